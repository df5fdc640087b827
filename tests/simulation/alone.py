"""A run that meets one fault alone, or none, costs what is known beforehand, and no more.

Other promises hold whatever happens, so they leave much open: a run may restart any task, and blame anybody. Where
only one thing happens, all that follows is known: which tasks restart, which incident has the reason, what is lost.
"""

from collections import Counter
from typing import Any, Dict, Iterator

from tests.simulation.costs import TICK_S, UNSEEN_STEPS, Cost, cost, is_spare, split
from tests.simulation.promises import Broken
from tests.simulation.runs import is_dense


def look(world: Any, status: Dict[str, Any]) -> None:
    """Raise Broken where a run with one fault, or none, has cost something else."""
    expected = None if is_dense(world.seed) else world.operators.expected(cost(world))
    if expected is not None:
        wrong = list(_wrong(world, status, expected))
        if wrong:
            faults = ", ".join(map(str, world.faults)) or "without a fault"
            raise Broken(f"I13: {faults}: {'; '.join(wrong)}")


def _wrong(world: Any, status: Dict[str, Any], expected: Cost) -> Iterator[str]:
    tasks = {f"{each['role']}:{each['index']}": each for each in status["tasks"]}
    if status["state"] != expected.state or expected.cause not in (status["cause"] or ""):
        yield f"expected {expected.state} {expected.cause}, found {status['state']}: {status['cause']}"
    restarts = {name: each["restarts"] for name, each in tasks.items() if each["restarts"]}
    if restarts != Counter(expected.restarts):
        yield f"expected restarts {dict(Counter(expected.restarts))}, found {restarts}"
    blames = [(each["kind"], _title(each)) for each in status["incidents"]]
    if sorted(blames) != sorted(expected.blames):
        yield f"expected incidents {sorted(expected.blames)}, found {sorted(blames)}"
    if world.shape.elastic:
        yield from _wrong_formation(world, status["formation"], expected)
    yield from _wrong_measures(world, status, expected)
    yield from _wrong_ends(world, tasks, expected)


def _wrong_formation(world: Any, formation: Dict[str, Any], expected: Cost) -> Iterator[str]:
    of = split(world, {*expected.lost, *expected.drained})
    wanted = (
        expected.formation,
        of.count("ps"),
        of.count("worker"),
        sorted(expected.without),
        sorted(expected.drained),
    )
    found = tuple(formation[key] for key in ("number", "ps", "workers", "without", "drained"))
    if found != wanted and expected.state == "succeeded":
        yield f"expected the formation {wanted}, found {found}"


def _wrong_measures(world: Any, status: Dict[str, Any], expected: Cost) -> Iterator[str]:
    lost, known = status["lost_steps"], world.training.known_lost
    if lost > expected.lost_steps or lost < known - UNSEEN_STEPS:
        found = f"{lost} by the status, {known} known"
        yield f"expected {expected.lost_steps} lost steps at most, found {found}"
    if world.training.falls > expected.falls:
        yield f"expected that training goes back {expected.falls} times at most, found {world.training.falls}"
    if expected.state == "succeeded" and world.training.stood_s > expected.stands_s:
        yield f"expected a pause of {expected.stands_s} s at most, found {world.training.stood_s}"
    effective = status["effective"]
    parts = [seconds for name, seconds in effective.items() if name not in ("share", "of_seconds")]
    if abs(sum(parts) - effective["of_seconds"]) > TICK_S:
        yield f"expected parts of {effective['of_seconds']} s, found {effective}"
    closing_at = world.promises.closing_at
    if expected.ends_s is not None and closing_at is not None:
        after_s = closing_at - world.faults[-1].at
        if not expected.ends_s[0] <= after_s <= expected.ends_s[1]:
            yield f"expected an end after {expected.ends_s} s, found {after_s:.1f}"
    for each in status["incidents"] if expected.state == "succeeded" else ():
        again_s = each["again_s"]
        if each["open"] or again_s is None or not 0 <= again_s <= expected.stands_s + 2 * TICK_S:
            yield f"expected that training went on after incident {each['number']}, found {again_s} s"


def _wrong_ends(world: Any, tasks: Dict[str, Dict[str, Any]], expected: Cost) -> Iterator[str]:
    """What the status says of tasks of a run that has succeeded, beside what became of their processes."""
    if expected.state != "succeeded":
        return
    for name, task in tasks.items():
        ended = "stopped" if task["role"] == "ps" else "succeeded"
        is_out = name in expected.drained or is_spare(world, name)
        wanted = "lost" if name in expected.lost else "stopped" if is_out else ended
        if task["state"] != wanted:
            yield f"expected {name} {wanted}, found {task['state']}"


def _title(incident: Dict[str, Any]) -> str:
    return str(incident["host"]) if incident["role"] is None else f"{incident['role']}:{incident['index']}"
