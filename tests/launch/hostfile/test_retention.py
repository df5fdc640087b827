"""The key ``keep`` as hosts get it, and as ``launch plan`` shows it."""

from pathlib import Path
from typing import Optional

import pytest

from cluster.spec.model import Keep, Spec
from launch.agent.wire.retention import DEFAULT, Retention
from launch.hostfile.keep import in_words, rule_of


def spec(keep: Optional[Keep]) -> Spec:
    return Spec(Path("r.yaml"), "r", (), keep=keep)


@pytest.mark.parametrize(
    ("keep", "rule", "words"),
    [
        (None, DEFAULT, "r that left nothing but logs and records, 90 days after their last use"),
        (Keep(), Retention(), ""),
        (Keep(runs=20), Retention(20), "r beyond the newest 20"),
        (
            Keep(20, 0.5, 50), Retention(20, 0.5, 50),
            "r beyond the newest 20, or 0.5 days after their last use, or beyond 50 GiB",
        ),
    ],
)  # fmt: skip
def test_a_rule_is_that_of_the_file_and_is_shown_in_a_line(keep: Optional[Keep], rule: Retention, words: str) -> None:
    asked = spec(keep)
    assert rule_of(asked) == rule
    assert in_words(asked) == (
        f"keep: hosts remove past runs of {words}" if words else "keep: hosts remove no past run of r"
    )
