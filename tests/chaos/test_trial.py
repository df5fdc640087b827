"""A trial is a function of its seed, and what is right for it is one of the trial."""

from collections import Counter
from itertools import product
from typing import Any, Dict

import numpy as np
import pytest

from tests.chaos.faults import CHECKPOINT, CHIEF, EVERY, KINDS, NOBODY, PS, START, STEP, TEARDOWN, WORKER, Fault
from tests.chaos.figures import Figures, table
from tests.chaos.seen import lost_steps
from tests.chaos.trial import OPTIMIZERS, ROWS, Trial, plan_trial
from tests.chaos.undisturbed import undisturbed
from tests.chaos.verdict import FAILED, SUCCEEDED, Seen, Undisturbed, complaints, most_lost, ways_to_end

TRIALS = [plan_trial(seed) for seed in range(2000)]
RIGHT = Undisturbed({"weights": [1.0, 2.0], "bias": [0.5]}, 0.25, {})
SAVED = {"weights": [[1.0, 2.0], [1.0, 2.0]], "bias": [[0.5], [0.5]]}


def trial(*faults: Fault, mode: str = "sync") -> Trial:
    return Trial(7, mode, elastic=False, detached=False, faults=faults)


def incident(kind: str, task: str, host: str, **values: Any) -> Dict[str, Any]:
    role, _, index = task.partition(":")
    told: Dict[str, Any] = {"kind": kind, "role": role, "index": int(index), "host": host, "cause": "c", "followed": []}
    return {**told, **values}


KILLED = Fault("kill", WORKER, STEP, 20)


def seen_well(**values: Any) -> Seen:
    """Of a synchronous run of 140 steps whose worker:1 was killed."""
    status = {
        "state": "succeeded", "global_step": 140, "cause": None, "metrics": {"loss": 0.25},
        "incidents": [incident("signal", WORKER, "h2")],
    }  # fmt: skip
    whole = {
        "code": 0, "output": "", "status": {**status, **values.pop("status", {})}, "happened": (True,),
        "variables": SAVED, "step": 140, "account": "gradients given by each worker: 140 140", **values,
    }  # fmt: skip
    return Seen(**whole)


def test_the_same_seed_is_the_same_trial_and_another_seed_another() -> None:
    assert [plan_trial(seed) for seed in range(50)] == TRIALS[:50]
    assert len({each._replace(seed=0) for each in TRIALS}) > 1000


def test_every_kind_target_moment_and_mode_comes_up_and_some_trials_have_two_faults() -> None:
    wanted = {
        (kind, target, moment) for kind in EVERY for target in KINDS[kind].targets for moment in KINDS[kind].moments
    }
    assert {(fault.kind, fault.target, fault.moment) for each in TRIALS for fault in each.faults} == wanted
    met = {(each.mode, each.size, each.optimizer) for each in TRIALS}
    assert met == set(product(["sync", "async", "backup"], ROWS, OPTIMIZERS))
    assert set(Counter(len(each.faults) for each in TRIALS)) == {1, 2}


def test_half_of_the_trials_train_with_adam_and_half_of_these_in_slices() -> None:
    with_adam = [each for each in TRIALS[:100] if each.optimizer == "adam"]
    assert len(with_adam) == 50
    assert 15 <= sum(each.size == "sliced" for each in with_adam) <= 35


def test_two_faults_are_of_kinds_that_a_run_survives() -> None:
    pairs = [each for each in TRIALS if len(each.faults) == 2]
    assert all(KINDS[fault.kind].pairs for each in pairs for fault in each.faults)
    assert all(ways_to_end(each, (True, True)) == {SUCCEEDED} for each in pairs)


def test_a_run_lasts_until_what_follows_from_its_faults_can_be_seen() -> None:
    assert trial(Fault("power", "h2", STEP, 20)).steps == trial(KILLED).steps
    assert trial(Fault("power", "h2", STEP, 20), mode="async").steps == 4 * trial(KILLED, mode="async").steps
    assert trial(KILLED, Fault("launcher", "the run", STEP, 20)).steps == 4 * trial(KILLED).steps


def test_a_trial_is_told_in_words() -> None:
    killed = trial(KILLED, Fault("cable-short", "h3", CHECKPOINT, 9))
    assert str(killed) == (
        "seed 7: sync, small, sgd, to step 140: worker:1 is killed from step 20 on;"
        " and h3 is cut off for 3 s from step 9 on as a checkpoint is written"
    )


def test_every_fault_has_words() -> None:
    for kind, (words, targets, *_) in KINDS.items():
        assert words.format(targets[0]) in str(Fault(kind, targets[0], STEP, 20))


def test_a_trial_without_a_fault_says_so_and_names_no_step() -> None:
    plain = trial(Fault("none", NOBODY, STEP, 36))
    assert str(plain) == "seed 7: sync, small, sgd, to step 140: nothing happens"
    assert plain.label == "none"


def test_nothing_is_wrong_with_a_run_that_ended_as_it_should() -> None:
    assert complaints(trial(KILLED), seen_well(), RIGHT) == []


def test_each_thing_that_is_wrong_is_told() -> None:
    wrong = seen_well(
        step=130, lost_steps=3, left=("h1: port 2222",), account="gradients given by each worker: 140 141",
        variables={**SAVED, "weights": [[1.0, 2.0], [1.0, 2.1]]}, status={"metrics": {"loss": 0.3}, "incidents": []},
    )  # fmt: skip
    assert [line.partition(":")[0] for line in complaints(trial(KILLED), wrong, RIGHT)] == [
        "the report", "left behind", "the newest checkpoint", "steps lost", "gradients",
        "the loss on held-out data", "weights",
    ]  # fmt: skip


def saved_after(steps: int, optimizer: str, rows: int) -> Dict[str, Any]:
    """Make what the checkpoint of a run that met nothing has."""
    right = undisturbed(steps, optimizer, rows)
    return {name: np.full([rows, 1], right.units.get(name, 1.0)) * row for name, row in right.variables.items()}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("steps", [140, 560])
def test_an_update_that_was_missed_or_doubled_is_seen(optimizer: str, steps: int) -> None:
    right = undisturbed(steps, optimizer, 2)
    for taken in (steps - 1, steps, steps + 1):
        seen = seen_well(variables=saved_after(taken, optimizer, 2), status={"metrics": {"loss": right.loss}})
        found = complaints(trial(KILLED), seen, right)
        assert bool(found) == (taken != steps)
        assert {line.partition(":")[0] for line in found} >= ({"weights"} if taken != steps else set())
        # A chief that dies while it applies an update may have missed it.
        by_the_chief = complaints(trial(KILLED._replace(target=CHIEF)), seen, right)
        assert [line for line in by_the_chief if not line.startswith("the report")] == []


def test_what_adam_keeps_is_compared_row_by_row_and_nothing_else_may_be_in_a_checkpoint() -> None:
    right, saved = undisturbed(140, "adam", 4), saved_after(140, "adam", 4)
    status = {"metrics": {"loss": right.loss}}
    off = {**saved, "weights/Adam_1": saved["weights/Adam_1"] * [[1], [1], [0.99], [1]]}
    found = complaints(trial(KILLED), seen_well(variables=off, status=status), right)
    assert [line.partition(":")[0] for line in found] == ["weights/Adam_1"]
    lacks = {name: saved[name] for name in ("weights", "bias")}
    found = complaints(trial(KILLED), seen_well(variables=lacks, status=status), right)
    assert [line.partition(":")[0] for line in found] == ["the newest checkpoint"]


def test_a_job_that_raises_once_must_be_named_unless_another_fault_ended_that_step() -> None:
    raised, cut = Fault("raise", WORKER, STEP, 20), Fault("cable-short", "h3", STEP, 18)
    unnamed: Dict[str, Any] = {"status": {"incidents": []}}
    eclipsed = seen_well(happened=(True, True), rejoined=frozenset([WORKER]), **unnamed)
    assert complaints(trial(cut, raised), eclipsed, RIGHT) == []
    for seen in (
        seen_well(happened=(True, True), **unnamed),
        seen_well(happened=(False, True), rejoined=frozenset([WORKER]), **unnamed),
    ):
        assert [line.partition(":")[0] for line in complaints(trial(cut, raised), seen, RIGHT)] == ["the report"]


def test_a_task_that_fails_in_the_second_in_which_its_agent_is_killed_need_not_be_named() -> None:
    agent = Fault("agent", "h2", STEP, 28)
    seen = seen_well(happened=(True, True), status={"incidents": [incident("agent", WORKER, "h2")]})
    assert complaints(trial(Fault("raise", WORKER, STEP, 27), agent), seen, RIGHT) == []
    for raised in (Fault("raise", WORKER, STEP, 60), Fault("raise", CHIEF, STEP, 27)):
        found = complaints(trial(raised, agent), seen, RIGHT)
        assert [line.partition(":")[0] for line in found] == ["the report"]


def test_a_task_that_is_killed_before_it_could_be_seen_to_stand_need_not_be_named_as_frozen() -> None:
    frozen, killed = incident("frozen", WORKER, "h2"), incident("signal", WORKER, "h2")
    stopped, purged = Fault("freeze", WORKER, STEP, 14), Fault("purge", WORKER, STEP, 63)
    seen = seen_well(happened=(True, True), account="", status={"incidents": [killed]})
    for mode, second, right in [
        ("backup", purged, True),
        ("sync", purged, False),
        ("backup", purged._replace(step=300), False),
        ("backup", purged._replace(target=CHIEF), False),
    ]:
        found = [line for line in complaints(trial(stopped, second, mode=mode), seen, RIGHT) if "frozen" in line]
        assert (found == []) is right
    assert not [
        line
        for line in complaints(trial(stopped, mode="backup"), seen_well(status={"incidents": [frozen]}), RIGHT)
        if "frozen" in line
    ]


def test_what_happens_in_the_second_in_which_the_leads_agent_is_killed_need_not_be_named() -> None:
    lead = Fault("agent", "h1", STEP, 28)
    seen = seen_well(happened=(True, True), status={"incidents": [incident("agent", CHIEF, "h1")]})
    for step, wrong in ((30, []), (60, ["the report"])):
        found = complaints(trial(lead, Fault("agent", "h3", STEP, step)), seen, RIGHT)
        assert [line.partition(":")[0] for line in found] == wrong


def test_a_run_that_should_have_failed_must_say_why() -> None:
    poisoned = trial(Fault("nan", CHIEF, STEP, 20))
    status = {"incidents": [incident("non-finite", CHIEF, "h1")]}
    succeeded = complaints(poisoned, seen_well(status=status), RIGHT)
    assert succeeded == ["the run: expected failed, found succeeded: None"]
    silent = seen_well(code=1, status={"state": "failed", "cause": "no idea", **status})
    assert complaints(poisoned, silent, RIGHT) == [
        "its cause: expected one that says 'not a finite number', found 'no idea'"
    ]


def test_a_fault_after_the_last_step_may_come_too_late() -> None:
    late = trial(Fault("power", "h2", TEARDOWN, 20))
    assert ways_to_end(late, (True,)) == {SUCCEEDED, FAILED}
    assert ways_to_end(trial(Fault("power", "h2", STEP, 20)), (False,)) == {SUCCEEDED}


def test_an_asynchronous_run_may_reach_its_last_step_before_a_worker_has_failed_for_good() -> None:
    fails = Fault("fail", WORKER, STEP, 20)
    assert ways_to_end(trial(fails), (True,)) == {FAILED}
    assert ways_to_end(trial(fails, mode="async"), (True,)) == {SUCCEEDED, FAILED}


def test_what_followed_from_an_incident_names_a_fault_too() -> None:
    killed = trial(Fault("kill", PS, START, 2))
    followed = incident("exit", CHIEF, "h1", followed=[incident("signal", PS, "h3")])
    assert complaints(killed, seen_well(status={"incidents": [followed]}), RIGHT) == []


def test_steps_are_lost_to_a_ps_and_to_nobody_else() -> None:
    assert most_lost(trial(KILLED), (True,)) == 0
    assert most_lost(trial(Fault("kill", PS, STEP, 20)), (False,)) == 0
    assert 40 <= most_lost(trial(Fault("kill", PS, STEP, 20)), (True,)) <= 80


def test_lost_steps_are_read_out_of_the_chiefs_log() -> None:
    log = (
        "joined at step 0\nstep 30/140 loss 1\njoined at step 30\nstep 55/140 loss 1\njoined at step 41\nstep 140/140\n"
    )
    assert lost_steps(log) == 14


def test_the_table_has_median_and_worst_of_each_kind() -> None:
    trials = [Figures("kill ps:0", True, 1.0, seconds, 3) for seconds in (4.0, 6.0, 11.0)]
    assert table([*trials, Figures("none", False, None, None, 0)])[2:] == [
        "| kill ps:0 | 3 of 3 | 1.0 s, 1.0 s | 6.0 s, 11.0 s | 3, 3 |",
        "| none | 0 of 1 | – | – | 0, 0 |",
    ]
