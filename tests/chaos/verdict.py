"""What is right for a trial, and whether what was seen is it."""

import re
from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tests.chaos.faults import CHIEF, HOST_OF, KINDS, PS, START, TEARDOWN, Fault
from tests.chaos.trial import CHECKPOINT_S, PAUSE_MS, Trial

SUCCEEDED, FAILED, STOPPED = "succeeded", "failed", "stopped"
EXACT, CLOSE = 2e-4, 0.1  # of a variable, where values reach 3
MISSED = 0.01  # what a single update changes at most, once a run is over
SECOND = 1000 // PAUSE_MS  # in steps
NOTICED_S = 10  # how long a task makes no progress until it is named
TOLD_S = 1.5  # how old the step may be that was told last
RESTORING = ("agent", "power", "cable")  # kinds after which the last checkpoint is restored

# Of each kind that ends a run: how, and what the cause must say. {host} is the fault's.
ENDS: Dict[str, Tuple[str, str]] = {
    "fail": (FAILED, r"chaos: every batch goes wrong"),
    "nan": (FAILED, r"not a finite number"),
    "launcher": (STOPPED, r"lease"),
    "power": (FAILED, r"{host}"),
    "cable": (FAILED, r"{host}"),
}
_GIVEN = re.compile(r"gradients given by (each worker|all workers): ([\d ]+)")


class Seen(NamedTuple):
    """What was seen of a run, and after it.

    ``code``: of ``launch up``, None where it was killed; ``happened``: of each fault, whether there was something left
    to hit; ``variables``: by name, [rows, values], and what the optimizer keeps, out of the newest checkpoint, with
    its global step, or None; ``lost_steps``: how far the global step went back, by the chief's logs; ``rejoined``:
    tasks whose log says that their step was lost and they joined again; ``left``: what a run must not leave on the
    hosts.
    """

    code: Optional[int]
    output: str
    status: Mapping[str, Any]
    happened: Tuple[bool, ...]
    variables: Optional[Mapping[str, Any]] = None
    step: Optional[int] = None
    account: str = ""
    lost_steps: int = 0
    rejoined: FrozenSet[str] = frozenset()
    left: Tuple[str, ...] = ()


class Undisturbed(NamedTuple):
    """What a run without faults has at a global step.

    ``variables`` has a row of each, and of what the optimizer keeps for it, by name; in ``units``, or 1 where there is
    none. ``loss`` is that on held-out data.
    """

    variables: Mapping[str, Sequence[float]]
    loss: float
    units: Mapping[str, float]


def ways_to_end(trial: Trial, happened: Sequence[bool]) -> FrozenSet[str]:
    """The states that the run may rightly end in."""
    hit = [fault for fault, did in zip(trial.faults, happened) if did]
    ending = {ENDS[fault.kind][0] for fault in hit if fault.kind in ENDS}
    late = any(fault.moment == TEARDOWN for fault in hit)
    # Where no worker waits for another, the steps may be done before one has failed for good.
    others = trial.mode != "sync" and any(fault.kind == "fail" for fault in hit)
    return frozenset(ending | {SUCCEEDED}) if late or others or not ending else frozenset(ending)


def complaints(trial: Trial, seen: Seen, undisturbed: Undisturbed) -> List[str]:
    """What is wrong with what was seen; nothing where all is right."""
    found = [*_of_the_end(trial, seen), *_of_the_report(trial, seen), *(f"left behind: {each}" for each in seen.left)]
    if seen.status.get("state") == SUCCEEDED:
        found += [*_of_the_steps(trial, seen), *_of_the_model(trial, seen, undisturbed)]
    return found


def _of_the_end(trial: Trial, seen: Seen) -> Iterator[str]:
    right, state = ways_to_end(trial, seen.happened), seen.status.get("state")
    if state not in right:
        yield f"the run: expected {' or '.join(sorted(right))}, found {state}: {seen.status.get('cause')}"
        return
    if state == SUCCEEDED and seen.code not in (0, None):
        yield f"launch up: expected exit code 0 of a run that succeeded, found {seen.code}"
    if state == FAILED and not trial.detached and seen.code not in _codes(trial):
        yield f"launch up: expected exit code 1 of a run that failed, found {seen.code}"
    if state != SUCCEEDED:
        yield from _of_the_cause(trial, seen)


def _codes(trial: Trial) -> Tuple[int, ...]:
    """3 is right, too, of a run that was hit before a process of it was up."""
    return (1, 3) if any(fault.moment == START for fault in trial.faults) else (1,)


def _of_the_cause(trial: Trial, seen: Seen) -> Iterator[str]:
    for fault, did in zip(trial.faults, seen.happened):
        pattern = ENDS[fault.kind][1].format(host=fault.host) if did and fault.kind in ENDS else ""
        if not re.search(pattern, seen.status.get("cause") or ""):
            yield f"its cause: expected one that says {pattern!r}, found {seen.status.get('cause')!r}"


def _of_the_report(trial: Trial, seen: Seen) -> Iterator[str]:
    told = [_brief(entry) for entry in _told(seen.status)]
    for fault, did in zip(trial.faults, seen.happened):
        hidden = _with_its_agent(trial, fault, seen) or _ended_before_it_was_noticed(trial, fault, seen)
        unheard = _in_a_lost_step(fault, seen) or hidden
        if did and _to_be_named(trial, fault) and not is_named(seen.status, fault) and not unheard:
            yield f"the report: expected {' or '.join(KINDS[fault.kind].incident)} of {fault.target}, found {told}"


def is_named(status: Mapping[str, Any], fault: Fault) -> bool:
    """Whether an incident of a run is this fault."""
    return any(_names(entry, fault) for entry in _told(status))


def _told(status: Mapping[str, Any]) -> List[Mapping[str, Any]]:
    """The incidents, and what followed from them."""
    return [entry for incident in status.get("incidents") or [] for entry in (incident, *incident["followed"])]


def _to_be_named(trial: Trial, fault: Fault) -> bool:
    """After the last step, a task may end as it likes; and who has lost its lead can only be told by others."""
    return bool(KINDS[fault.kind].incident) and fault.moment != TEARDOWN and fault.target != "h1"


def _in_a_lost_step(fault: Fault, seen: Seen) -> bool:
    """Whether a job may have raised once in a step that another fault ended: its worker has joined again instead."""
    return fault.kind == "raise" and sum(seen.happened) > 1 and fault.target in seen.rejoined


def _with_its_agent(trial: Trial, fault: Fault, seen: Seen) -> bool:
    """Whether it may have come in the very second in which the agent was killed that would have told of it.

    Of a task that is its host's agent, and of all the lead's.
    """
    tellers = (fault.host, HOST_OF[CHIEF])
    return any(
        did and other.kind.startswith("agent") and other.host in tellers and abs(other.step - fault.step) <= SECOND
        for other, did in zip(trial.faults, seen.happened)
        if other is not fault
    )


def _ended_before_it_was_noticed(trial: Trial, fault: Fault, seen: Seen) -> bool:
    """Whether a task that had stopped was killed before anybody could see that it makes no progress.

    Where every worker waits for it nothing comes after it, as other faults wait for a step.
    """
    return (
        trial.mode != "sync"
        and KINDS[fault.kind].incident == ("frozen",)
        and any(
            did
            and other.target == fault.target
            and KINDS[other.kind].incident == ("signal",)
            and 0 <= other.step - fault.step <= NOTICED_S * SECOND
            for other, did in zip(trial.faults, seen.happened)
        )
    )


def _names(entry: Mapping[str, Any], fault: Fault) -> bool:
    of_task = entry["role"] is not None and f"{entry['role']}:{entry['index']}" == fault.target
    return entry["kind"] in KINDS[fault.kind].incident and (of_task or entry["host"] == fault.host)


def _brief(entry: Mapping[str, Any]) -> str:
    return f"{entry['kind']} of {entry['role']}:{entry['index']}@{entry['host']}: {entry['cause']}"


def _of_the_steps(trial: Trial, seen: Seen) -> Iterator[str]:
    step = seen.status.get("global_step") or 0
    late = 0 if trial.mode == "sync" else 1
    if not trial.steps <= step <= trial.steps + late:
        yield f"the global step: expected {trial.steps}, found {step}"
    if seen.step != step:
        yield f"the newest checkpoint: expected step {step}, found {seen.step}"
    if seen.lost_steps > most_lost(trial, seen.happened):
        yield f"steps lost: expected at most {most_lost(trial, seen.happened)}, found {seen.lost_steps}"
    given = _GIVEN.search(seen.account)
    numbers = [int(number) for number in given.group(2).split()] if given else []
    if trial.mode != "backup" and (not numbers or set(numbers) != {step}):
        yield f"gradients: expected {step} of each worker, found {seen.account!r}"


def most_lost(trial: Trial, happened: Sequence[bool]) -> int:
    """How many steps the global step may go back: what is trained between two checkpoints, for each time."""
    pace = 1000 / PAUSE_MS * (2 if trial.mode == "async" else 1)
    times = sum(did and _restores(fault) for fault, did in zip(trial.faults, happened))
    # A chief that was started anew begins to count the time to its next checkpoint anew.
    late = 2 if any(fault.target in (CHIEF, "h1") for fault in trial.faults) else 1
    return int(times * pace * (late * CHECKPOINT_S + TOLD_S))


def _restores(fault: Fault) -> bool:
    return fault.target == PS or fault.kind.split("-")[0] in RESTORING


def _of_the_model(trial: Trial, seen: Seen, undisturbed: Undisturbed) -> Iterator[str]:
    if seen.variables is None or seen.step is None:
        return
    loss = (seen.status.get("metrics") or {}).get("loss")
    near = EXACT + _missed(trial) * MISSED if trial.mode == "sync" else CLOSE
    if loss is None or abs(loss - undisturbed.loss) > near:
        yield f"the loss on held-out data: expected {undisturbed.loss:.4f} within {near:g}, found {loss}"
    yield from differences(seen.variables, undisturbed, near)


def differences(variables: Mapping[str, Any], undisturbed: Undisturbed, near: float) -> Iterator[str]:
    """Yield what the variables of a checkpoint lack, have beside, or have otherwise."""
    if set(variables) != set(undisturbed.variables):
        yield f"the newest checkpoint: expected {sorted(undisturbed.variables)}, found {sorted(variables)}"
        return
    for name, right in undisturbed.variables.items():
        rows = np.reshape(variables[name], [-1, len(right)]) / undisturbed.units.get(name, 1.0)
        off = np.abs(rows - right).max(axis=1)
        if not off.max() <= near:
            yield f"{name}: expected {list(right)} in each row within {near:g}, found {rows[off.argmax()].tolist()}"


def _missed(trial: Trial) -> int:
    """How often an update of a step may have been missed: a chief that dies while it applies one."""
    return sum(fault.target in (CHIEF, "h1") for fault in trial.faults)
