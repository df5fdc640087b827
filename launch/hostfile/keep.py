"""The key ``keep``: the rule by which hosts remove past runs of a file's name, and the same in words."""

from typing import Iterator

from cluster.spec.model import Spec
from launch.agent.wire.retention import DEFAULT, Retention


def rule_of(spec: Spec) -> Retention:
    """Return the rule of a file's runs: its key ``keep``, or the default."""
    return DEFAULT if spec.keep is None else Retention(spec.keep.runs, spec.keep.days, spec.keep.gib)


def in_words(spec: Spec) -> str:
    """Return the rule in a sentence, for ``launch plan``."""
    rule = rule_of(spec)
    if rule.spares_results:
        return (
            f"keep: hosts remove past runs of {spec.name} that left nothing but logs and records, "
            f"{rule.days:g} days after their last use"
        )
    bounds = list(_bounds(rule))
    if not bounds:
        return f"keep: hosts remove no past run of {spec.name}"
    return f"keep: hosts remove past runs of {spec.name} {', or '.join(bounds)}"


def _bounds(rule: Retention) -> Iterator[str]:
    if rule.runs is not None:
        yield f"beyond the newest {rule.runs}"
    if rule.days is not None:
        yield f"{rule.days:g} days after their last use"
    if rule.gib is not None:
        yield f"beyond {rule.gib:g} GiB"
