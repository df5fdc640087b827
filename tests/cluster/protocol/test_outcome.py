"""What a task tells its agent, in files."""

import json
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import JobError, TaskError, TrainingError
from cluster.protocol.outcome import OUTCOME, PROGRESS, WORK, Outcome, Progress, Reporter, read_outcome, read_progress
from tests.support.clocks import Clock


def test_progress_is_written_at_most_once_a_second_unless_forced(tmp_path: Path) -> None:
    clock = Clock(100.0)
    reporter = Reporter(tmp_path, clock)
    for step, moment, force in [(1, 0.0, False), (2, 0.5, False), (3, 0.6, True), (4, 1.5, False), (5, 1.6, False)]:
        clock.now = moment
        reporter.progress(Progress(step), force)
        written = read_progress(tmp_path)
        assert written is not None and written.step == {2: 1, 4: 3}.get(step, step)
        assert written.time == {2: 0.0, 4: 0.6}.get(step, moment)


def test_progress_and_outcome_come_back_as_they_were_written(tmp_path: Path) -> None:
    reporter = Reporter(tmp_path, Clock(100.0))
    reporter.progress(Progress(3, 0.5, 12.5, 96, 2))
    reporter.outcome(Outcome(True, 3, checkpoint="model-3", checkpoint_step=3, metrics={"accuracy": 0.5}))
    assert read_progress(tmp_path) == Progress(3, 0.5, 12.5, 96, 2, time=100.0)
    found = read_outcome(tmp_path)
    assert found == Outcome(True, 3, checkpoint="model-3", checkpoint_step=3, metrics={"accuracy": 0.5}, time=100.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outcome.json", "progress.json"]


def test_warnings_name_the_authors_own_file_and_few_and_short_ones_are_read(tmp_path: Path) -> None:
    reporter = Reporter(tmp_path, Clock(100.0), job_dir="/home/me/houses")
    reporter.progress(Progress(3, warnings=[f"{tmp_path / WORK}/job.py:3: x\ny", *["z" * 1000] * 30]))
    found = read_progress(tmp_path)
    assert found is not None and found.warnings[0] == "/home/me/houses/job.py:3: x y"
    assert len(found.warnings) == 20 and len(found.warnings[1]) == 500


@pytest.mark.parametrize("warnings", ["x", [1], [["x"]], {"x": "y"}, None])
def test_warnings_that_are_no_list_of_texts_are_refused(tmp_path: Path, warnings: Any) -> None:
    (tmp_path / PROGRESS).write_text(json.dumps({"step": 1, "warnings": warnings}))
    with pytest.raises(ValueError, match="warnings: expected a list of texts, found"):
        read_progress(tmp_path)


def test_without_a_folder_nothing_is_written_and_nothing_fails() -> None:
    reporter = Reporter.from_environment({})
    reporter.progress(Progress(1))
    reporter.outcome(Outcome(True))


def test_a_task_that_wrote_nothing_has_neither(tmp_path: Path) -> None:
    assert read_progress(tmp_path) is None and read_outcome(tmp_path) is None


@pytest.mark.parametrize("error", [JobError("job.py:3: x"), TaskError("x"), TrainingError("x")])
def test_an_error_of_our_own_is_not_worth_a_retry_and_is_told_in_its_own_words(error: Exception) -> None:
    outcome = Outcome.from_exception(error, step=4)
    assert (outcome.succeeded, outcome.retry, outcome.step, outcome.cause) == (False, False, 4, str(error))


def test_any_other_error_is_worth_a_retry_and_is_told_in_one_line_with_its_type_and_traceback() -> None:
    outcome = Outcome.from_exception(_raised(RuntimeError("first\nsecond")))
    assert outcome.retry and outcome.cause == "RuntimeError: first second"
    assert "in _raised" in str(outcome.traceback)


def test_a_failure_names_the_authors_own_file_and_not_the_tasks_copy(tmp_path: Path) -> None:
    environ = {"LAUNCH_TASK_DIR": str(tmp_path), "LAUNCH_JOB_DIR": "/home/me/houses"}
    outcome = Reporter.from_environment(environ).failure(JobError(f"{tmp_path / WORK}/job.py:3: x"), step=2)
    assert (outcome.cause, outcome.step) == ("/home/me/houses/job.py:3: x", 2)
    assert "/home/me/houses/job.py:3: x" in str(outcome.traceback) and f"/{WORK}/" not in str(outcome.traceback)
    written = read_outcome(tmp_path)
    assert written is not None and written.cause == outcome.cause


def test_without_a_folder_of_the_author_a_failure_is_reported_as_it_is(tmp_path: Path) -> None:
    for reporter in (Reporter(None), Reporter(tmp_path)):
        assert reporter.failure(JobError(f"{tmp_path / WORK}/job.py:3: x")).cause == f"{tmp_path / WORK}/job.py:3: x"


def test_a_cause_is_cut_to_one_readable_line() -> None:
    cause = Outcome.from_exception(RuntimeError("x" * 10_000)).cause
    assert cause is not None and len(cause) == 500 and cause.endswith("…")


def _raised(error: Exception) -> Any:
    try:
        raise error
    except RuntimeError as caught:
        return caught


def test_on_a_full_disk_progress_and_outcome_are_written_where_there_was_room_before(tmp_path: Path) -> None:
    reporter = Reporter(tmp_path)
    reporter.progress(Progress(1))
    for name in (PROGRESS, OUTCOME):
        (tmp_path / f".{name}.partial").mkdir()  # so that no new file can be written
    reporter.progress(Progress(2), force=True)
    reporter.outcome(Outcome(True, 2, traceback="long"))
    told, ended = read_progress(tmp_path), read_outcome(tmp_path)
    assert told is not None and told.step == 2
    assert ended is not None and ended.succeeded and ended.step == 2


def test_what_cannot_be_written_at_all_is_said_once_and_training_goes_on(tmp_path: Path, capsys: Any) -> None:
    reporter = Reporter(tmp_path / "gone")
    for step in (1, 2):
        reporter.progress(Progress(step), force=True)
    reporter.outcome(Outcome(True, 2))
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 1 and f"{tmp_path}/gone/{PROGRESS} on " in said[0] and "No such file" in said[0]


def test_the_room_for_the_outcome_goes_with_it(tmp_path: Path) -> None:
    reporter = Reporter(tmp_path)
    reporter.progress(Progress(1))
    reporter.outcome(Outcome(True, 1))
    assert {path.name for path in tmp_path.iterdir()} == {PROGRESS, OUTCOME}
