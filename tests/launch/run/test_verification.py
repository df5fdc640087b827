"""What ``launch verify`` makes of a hosts file, and what it prints."""

from pathlib import Path
from typing import Any

import pytest

from cluster.spec import load
from cluster.spec.model import Spec
from cluster.task import Checkpoint
from launch.errors import UsageError
from launch.status.run import RunStatus
from launch.status.task import TaskStatus
from launch.verbs.verify import ending, is_equal, prepared

TEXT = """
job: digits
cluster: {ps: [cpu01], worker: ["gpu[01-02]"], evaluator: [cpu02]}
"""
COMPARED = {"verified_steps": 20.0, "verified_variables": 8.0, "verified_optimizer_variables": 19.0}


def spec(tmp_path: Path, text: str = "", job: str = TEXT) -> Spec:
    path = tmp_path / "hosts.yaml"
    path.write_text(job + text)
    return load(path)


def status(state: str = "succeeded", **more: Any) -> RunStatus:
    tasks = [TaskStatus("ps", 0), TaskStatus("worker", 0), TaskStatus("worker", 1)]
    return RunStatus("digits-1", "digits", state, tasks=tasks, **more)


def test_it_neither_restarts_nor_resumes_nor_saves(tmp_path: Path) -> None:
    text = (
        "train: {steps: 40, checkpoint: {dir: /of/a/run, replicas: 1}, trace: 3}\nrestart: {max: 5}\n"
        "elastic: {min_workers: 1}\n"
    )
    found = prepared(spec(tmp_path, text), 100)
    assert (found.train.steps, found.train.verify, found.train.trace) == (40, True, None)
    assert (found.train.checkpoint, found.restart.max, found.elastic) == (Checkpoint(), 0, None)
    assert [task.name for task in found.tasks] == ["ps:0", "worker:0", "worker:1"]


def test_it_compares_as_many_steps_as_it_is_told(tmp_path: Path) -> None:
    assert prepared(spec(tmp_path), 7).train.steps == 7


def test_it_computes_on_cpus_with_as_many_towers(tmp_path: Path) -> None:
    job = "job: digits\ncluster: {ps: [cpu01], worker: [{host: gpu01, gpus: [0, 1]}]}\n"
    found = prepared(spec(tmp_path, job=job), 1)
    assert [task.gpus for task in found.tasks] == [(), ()] and found.train.towers == 2


@pytest.mark.parametrize("text", ["train: {mode: async}", "train: {wire: bfloat16, backup_workers: 1}"])
def test_what_cannot_be_verified_is_refused_with_the_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as refused:
        prepared(spec(tmp_path, text), 1)
    lines = str(refused.value).splitlines()
    assert len(lines) == text.count(":") - 1
    assert all(line.startswith(f"{tmp_path}/hosts.yaml: train.") for line in lines)


def test_a_program_of_others_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="command: expected a job"):
        prepared(spec(tmp_path, job="command: [a]\ncluster: {ps: [c], worker: [d]}\n"), 1)


def test_a_hosts_file_cannot_ask_for_it(tmp_path: Path) -> None:
    from cluster.errors import SpecError

    with pytest.raises(SpecError, match="verify"):
        spec(tmp_path, "train: {verify: true}")


def test_equal_is_said_in_one_line_for_each_comparison() -> None:
    assert ending(status(metrics={**COMPARED, "verified_plain_steps": 20.0})) == [
        "equals plain TensorFlow, but for rounding, in 20 steps",
        "digits-1 equals one process bit by bit in 20 steps: 8 variables and 19 of the optimizer, 2 workers",
    ]


def test_a_difference_is_the_cause() -> None:
    cause = "worker:0@a: step 7: servers' w differs"
    assert ending(status("failed", cause=cause)) == [f"digits-1 failed: {cause}"]


def test_a_run_that_tells_of_no_comparison_is_not_equal() -> None:
    assert not is_equal(status()) and not is_equal(status("failed", metrics=COMPARED))
    assert "expected the chief's report" in ending(status())[0]


def test_what_was_compared_with_plain_tensorflow_and_what_was_not_has_a_line_each() -> None:
    more = {"verified_plain_steps": 20.0, "not_compared_steps": 1.0, "verified_plain_steps_by_parts": 20.0}
    names = {"differs_by_design/norm/mean": 20.0, **{f"not_compared/{number}": 1.0 for number in range(7)}}
    more["not_compared_steps_of_shards"] = 3.0
    names.update({"not_compared_table/user": 1.0, "given_random_numbers": 2.0})
    *lines, last = ending(status(metrics={**COMPARED, **more, **names}))
    assert lines == [
        "equals plain TensorFlow, but for rounding, in 20 steps",
        "batch statistics differ by design: each tower of both sides uses its own part",
        "not compared in 1 step: numbers that are not finite",
        "not compared in 3 steps: batches at the end of shards are not full",
        "norm/mean differs by design: the first tower's part of a batch updates it",
        *[f"{number} not compared: only one side has it" for number in range(5)],
        "and 2 more: launch status --json has their names",
        "random numbers differ by design: both sides use the numbers of the run",
        "user not compared: both sides use the rows of the run's table",
    ]
    assert all(len(line) <= 80 for line in lines) and "bit by bit" in last


def test_a_model_that_plain_tensorflow_cannot_build_is_said_to_be_compared_with_one_process_alone() -> None:
    first, last = ending(status(metrics={**COMPARED, "verified_plain_steps": 0.0}))
    assert first == "not compared with plain TensorFlow: the log of the chief has the reason" and "bit by bit" in last
