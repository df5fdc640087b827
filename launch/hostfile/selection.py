"""Select tasks of a hosts file by patterns, separated by commas: ``gpu[01-04]``, ``worker:3``, ``ps:*``."""

from dataclasses import replace
from typing import Callable, Dict, FrozenSet, List, Optional, Sequence, Tuple

from ClusterShell.RangeSet import RangeSet, RangeSetException

from cluster.spec.host_names import HostError, hosts
from cluster.spec.model import ROLE_ORDER, Spec, TaskSpec
from cluster.task import TRAINERS
from launch.errors import UsageError
from launch.hostfile.import_formats import split
from launch.view.console import fold

_NEEDED = ("ps", "worker")  # a cluster that has such tasks needs at least one to train

Meant = Callable[[TaskSpec], bool]


def narrowed(spec: Spec, include: Sequence[str], exclude: Sequence[str]) -> Spec:
    """Return the spec with only the tasks that match ``include`` and do not match ``exclude``.

    Without ``include``, all tasks match. The selected tasks are renumbered from 0 in each role, because TensorFlow
    allows no gaps.

    Raises:
      UsageError: a pattern matches no task, or too few tasks are left to train.
    """
    if not include and not exclude:
        return spec
    kept = chosen(spec.tasks, include, exclude)
    _refuse_too_few(spec, kept)
    return replace(spec, tasks=renumbered(kept), success=_success(spec, kept))


def chosen(tasks: Sequence[TaskSpec], include: Sequence[str], exclude: Sequence[str]) -> List[TaskSpec]:
    """Return the tasks that match ``include`` and do not match ``exclude``, unchanged and in order.

    Raises:
      UsageError: a pattern matches none of ``tasks``.
    """
    wanted, unwanted = _any_of(tasks, "--include", include), _any_of(tasks, "--exclude", exclude)
    return [task for task in tasks if (not include or wanted(task)) and not unwanted(task)]


def _any_of(tasks: Sequence[TaskSpec], flag: str, texts: Sequence[str]) -> Meant:
    patterns = [pattern for text in texts for pattern in split(text)]
    meant = [_meaning(flag, pattern) for pattern in patterns]
    for pattern, means in zip(patterns, meant):
        if not any(means(task) for task in tasks):
            raise UsageError(f"{flag}: expected a task or host of the file, which has {_all(tasks)}; found {pattern!r}")
    return lambda task: any(means(task) for means in meant)


def _meaning(flag: str, pattern: str) -> Meant:
    role, _, text = pattern.partition(":")
    if role not in ROLE_ORDER or not text:
        names = _hosts(flag, pattern)
        return lambda task: task.host in names
    if text == "*":
        return lambda task: task.role == role
    indices = _indices(flag, pattern, text)
    return lambda task: task.role == role and task.index in indices


def _hosts(flag: str, pattern: str) -> FrozenSet[str]:
    try:
        return frozenset(hosts(pattern))
    except HostError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise UsageError(
            f"{flag}: expected {error.expected}, or a task such as worker:3; found {error.found}{hint}"
        ) from None


def _indices(flag: str, pattern: str, text: str) -> FrozenSet[int]:
    try:
        return frozenset(int(number) for number in RangeSet(text.strip("[]")).striter())
    except (RangeSetException, ValueError):
        raise UsageError(f"{flag}: expected ROLE:*, ROLE:3 or ROLE:[0-3]; found {pattern!r}") from None


def _all(tasks: Sequence[TaskSpec]) -> str:
    """Return ``ps:0, worker:[0-3], and the hosts cpu01,gpu[01-04]``."""
    sizes = _sizes(tasks)
    names = [f"{role}:0" if size == 1 else f"{role}:[0-{size - 1}]" for role, size in sizes.items()]
    return f"{', '.join(names)}, and the hosts {fold(dict.fromkeys(task.host for task in tasks))}"


def _sizes(tasks: Sequence[TaskSpec]) -> Dict[str, int]:
    sizes: Dict[str, int] = {}
    for task in tasks:
        sizes[task.role] = sizes.get(task.role, 0) + 1
    return sizes


def _refuse_too_few(spec: Spec, kept: Sequence[TaskSpec]) -> None:
    had, left = _sizes(_no_spares(spec.tasks)), _sizes(_no_spares(kept))
    for role in _NEEDED:
        if had.get(role) and not left.get(role):
            raise UsageError(
                f"--include, --exclude: expected at least one {role} to be left, found none of {had[role]}; "
                f"keep one, as in --include '{role}:0,…'"
            )
    workers = sum(left.get(role, 0) for role in TRAINERS)
    if spec.train.backup_workers >= workers:
        raise UsageError(
            f"--include, --exclude: expected more workers than train.backup_workers ({spec.train.backup_workers}), "
            f"found {workers} left; keep more, or add --set train.backup_workers=0"
        )
    if spec.elastic is not None and workers < spec.elastic.min_workers:
        raise UsageError(
            f"--include, --exclude: expected at least elastic.min_workers ({spec.elastic.min_workers}), "
            f"found {workers} left; keep more, or add --set elastic.min_workers={workers}"
        )


def _success(spec: Spec, kept: Sequence[TaskSpec]) -> Optional[str]:
    """Return the key ``success`` with the new name of the worker that it names."""
    role, _, index = (spec.success or "").partition(":")
    if not index:
        return spec.success
    left = [f"{each.role}:{each.index}" for each in kept if each.role == role]
    if spec.success not in left:
        raise UsageError(
            f"--include, --exclude: expected {spec.success} to be left, which success names; keep it, or add "
            "--set success=all"
        )
    return f"{role}:{left.index(spec.success)}"


def _no_spares(tasks: Sequence[TaskSpec]) -> Sequence[TaskSpec]:
    return [task for task in tasks if not task.spare]


def renumbered(tasks: Sequence[TaskSpec]) -> Tuple[TaskSpec, ...]:
    """Return the tasks, renumbered from 0 in each role."""
    sizes: Dict[str, int] = {}
    numbered = []
    for task in tasks:
        numbered.append(replace(task, index=sizes.setdefault(task.role, 0)))
        sizes[task.role] += 1
    return tuple(numbered)
