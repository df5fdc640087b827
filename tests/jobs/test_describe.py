"""How few parameter servers would do: found with the placement that training uses."""

import json
from pathlib import Path
from typing import Any, Dict, List, Type

import pytest

from cluster.errors import JobError, MissingDataError
from cluster.protocol.outcome import GRAPH_MISTAKE
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.variables.profile import VariableProfile
from jobs import describe as described
from jobs.describe import describe, fewest, is_of_machine, pulled
from tests.support import ROOT, nightly

MIB = 1 << 20


def model(*shapes: List[int]) -> Dict[str, VariableProfile]:
    """Variables v0, v1, … of float32, each trained and read whole."""
    return {f"v{index}": VariableProfile(tuple(shape), 4, is_dense=True) for index, shape in enumerate(shapes)}


def few(variables: Dict[str, VariableProfile], share: float) -> int:
    return fewest(lambda number: max(pulled(variables, set(variables), number)), share)


def test_a_model_that_can_be_cut_needs_as_many_ps_as_its_workers_cards_carry() -> None:
    large = model([4096, 4096], [4096, 1024], [1024])
    assert [few(large, 1 / workers) for workers in (1, 2, 4, 7)] == [1, 2, 4, 7]


def test_several_workers_on_a_host_share_its_card_so_that_fewer_ps_do() -> None:
    assert few(model([4096, 4096]), share=2 / 8) == 4


def test_more_ps_than_a_small_model_has_pieces_would_not_help() -> None:
    small = model([100], [100], [60], [40])  # three ps: 100, 100, 100; more leave the largest whole
    assert few(small, share=1 / 16) == 3


def test_no_smaller_number_would_do() -> None:
    """Against every number, one by one."""
    for variables in (model([512, 1024], [700, 700], [64]), model([3000, 3000], *[[300, 300]] * 40)):
        least = min(max(pulled(variables, set(variables), number)) for number in range(1, 21))
        total = sum(each.bytes for each in variables.values())
        enough = 1.02 * max(least, 0.1 * total)
        expected = next(n for n in range(1, 21) if max(pulled(variables, set(variables), n)) <= enough)
        assert few(variables, share=0.1) == expected


def test_of_a_table_the_rows_of_a_step_count_and_of_what_is_not_trained_nothing() -> None:
    variables = {"table": VariableProfile((MIB, 16), 4, lookups=1024), "mean": VariableProfile((1000,), 4)}
    assert pulled(variables, {"table"}, 1) == [1024 * 64]
    assert pulled(variables, {"table"}, 4) == [256 * 64] * 4
    assert pulled(variables, {"table", "mean"}, 1) == [1024 * 64 + 4000]


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_one_ps_does_where_one_worker_reads(share: float) -> None:
    assert few(model([1]), share) == 1


@pytest.mark.parametrize(("wire", "element"), [("float32", 4), ("bfloat16", 2)])
def test_rows_of_embedding_tables_are_counted_in_the_format_in_which_they_travel(wire: str, element: int) -> None:
    task = Task("worker", 0, {"ps": ["a:1"], "worker": ["b:1", "c:1"]})
    job = str(ROOT / "tests/support/training/jobs/clicks.py")
    found = describe(job, task, Train(tower_batch_size=32, wire=wire), {"steps": 10}, 1.0)["tables"]
    widths = {"hours": (32, 1), "user": (32, 4), "words": (96, 4)}  # and the ids of a step
    assert {each["name"]: each["bytes_per_step"] for each in found} == {
        name: ids * (element * width + 8) for name, (ids, width) in widths.items()
    }


# -- every job that exists: none may be taken for a mistake

ARGS: Dict[str, Any] = {
    "mnist": {"data_dir": "/nonexistent"}, "cifar_resnet": {"data_dir": "/nonexistent"},
    "drawn": {"steps": 10, "seed": 0, "dense": True, "optimizer": "sgd", "also": [1]},
    "synthetic": {"model": "embedding"}, "unlike": {"sizes": [[8], [8]]}, "words": {"steps": 10},
    "clicks": {"steps": 10}, "served": {"steps": 10}, "scored": {"examples": 100},
    "large": {"steps": 10}, "late": {"steps": 10}, "recalled": {"steps": 10},
    "warm": {"seed": 0, "optimizer": "sgd", "rate": 0.1}, "uneven": {"pause_s": [0, 0]}, "table": {"examples": 100},
    "ledger": {"files": str(ROOT / "requirements"), "examples": 100, "workers": 3},
    "quadratic": {"trouble": "/nonexistent", "pause_ms": 0, "rows": 1, "decay": 0, "rate": 0.1, "optimizer": "adam"},
}  # fmt: skip
FOLDERS = ("jobs", "tests/support/training/jobs", "tests/chaos/job")
JOBS = [path for folder in FOLDERS for path in (ROOT / folder).glob("*.py") if "\ndef model(" in path.read_text()]
SHIPPED = [job for job in JOBS if job.parent == ROOT / "jobs"]


@pytest.mark.parametrize("job", nightly.few(sorted(JOBS), SHIPPED), ids=lambda job: job.stem)
def test_no_job_that_trains_is_taken_for_a_mistake(job: Path) -> None:
    task = Task("worker", 0, {"ps": ["a:1", "a:2"], "worker": ["b:1", "c:1"]})
    stages = 2 if job.stem in ("staged", "pipeline") else 1
    settings = Train(steps=10, tower_batch_size=32, stages=stages)
    try:
        describe(str(job), task, settings, ARGS.get(job.stem, {}), 1.0)
    except MissingDataError as error:
        assert is_of_machine(error) and job.stem in ("mnist", "cifar_resnet")


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(2, "no such file"), ModuleNotFoundError("No module named 'pandas'"), MemoryError(),
        MissingDataError("args.data_dir: …"), ConnectionRefusedError(), tf.errors.NotFoundError(None, None, "no file"),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_what_another_machine_may_have_is_no_mistake_however_deep_it_lies(error: Exception) -> None:
    blamed = JobError("job.py:3: …")
    blamed.__cause__ = error
    assert is_of_machine(error) and is_of_machine(blamed)


@pytest.mark.parametrize("error", [ValueError("x"), JobError("x"), AttributeError("x"), SyntaxError("x")])
def test_the_jobs_own_failure_is_a_mistake(error: Exception) -> None:
    assert not is_of_machine(error)


@pytest.mark.parametrize(("error", "code"), [(JobError, GRAPH_MISTAKE), (MissingDataError, 1), (OSError, 1)])
def test_the_exit_code_has_the_kind_of_failure_and_the_last_line_its_cause(
    error: Type[Exception], code: int, monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    def fail(*_: Any) -> None:
        raise error("job.py:3: wrong")

    monkeypatch.setattr(described, "describe", fail)
    monkeypatch.setattr("sys.argv", ["describe", "digits"])
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}})
    )
    with pytest.raises(SystemExit) as ended:
        described.main()
    assert ended.value.code == code
    assert capsys.readouterr().err.splitlines()[-1].endswith("job.py:3: wrong")
