"""A run's files as they are told: the end of each log, bounded in all, from the beginning of a line."""

from pathlib import Path

from launch.agent.diagnosis.evidence import LEAST, logs, plan_of, share, tail, traces, values
from launch.agent.state.run_folder import RunFolder
from launch.agent.text import Redaction


def folder_of(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path, "r-1", "h")
    folder.create()
    folder.task("worker:0").mkdir()
    env = {"PATH": "/bin", "HIDDEN": "x", "MY_TOKEN": "abcdefgh"}
    task = {"name": "worker:0", "argv": ["a", "--password", "hunter22"], "env": env}
    folder.write("plan.json", {"name": "r", "token": "t0k3n", "tasks": [task]})
    return folder


def test_the_end_of_a_log_begins_with_a_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("first\nsecond\nthird\n")
    assert tail(log, 10) == "third\n"
    assert tail(log, 100) == "first\nsecond\nthird\n"
    assert tail(tmp_path / "none", 9) == "cannot be read: No such file or directory\n"


def test_a_line_that_is_longer_than_its_share_is_told_from_its_middle(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("x" * 100)
    assert tail(tmp_path / "log", 10) == "x" * 10


def test_what_small_logs_do_not_need_goes_to_the_large_ones() -> None:
    assert share({"a": 10, "b": 90_000, "c": 90_000}, 100_010) == {"a": 10, "b": 50_000, "c": 50_000}
    assert share({"a": 90_000, "b": 90_000}, 100) == {"a": LEAST, "b": LEAST}


def test_every_attempt_is_told_and_how_much_of_it(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    for attempt in range(2):
        folder.log("worker:0", attempt).write_text(f"{attempt}: password=hunter22\n" * 1000)
    told = dict(logs(folder, Redaction(), 20_000))
    assert set(told) == {"agent.log", "tasks/worker.0/attempt_0.log", "tasks/worker.0/attempt_1.log", "logs.txt"}
    assert set(told["tasks/worker.0/attempt_1.log"].splitlines()) == {"1: password=(secret)"}
    assert "attempt_1.log, 21000 bytes; this archive has the last 10000" in told["logs.txt"]


def test_timelines_are_told_as_far_as_they_fit_and_the_others_are_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    assert dict(traces(folder, Redaction(), 1000)) == {}
    where = folder.path / "trace"
    where.mkdir()
    large, small = where / "step_1.worker_0.json", where / "step_1.worker_1.json"
    large.write_text('{"traceEvents": ["' + "x" * 1000 + '"]}')
    small.write_text('{"traceEvents": []}')
    told = dict(traces(folder, Redaction(), 1000))
    assert set(told) == {"trace/step_1.worker_1.json", "traces.txt"}
    assert told["trace/step_1.worker_1.json"] == {"traceEvents": []}
    assert told["traces.txt"] == f"{large}, 1021 bytes, too large for this archive\n{small}, 19 bytes\n"


def test_a_plan_is_told_without_its_token_and_the_values_of_unknown_variables(tmp_path: Path) -> None:
    plan = plan_of(folder_of(tmp_path), Redaction())
    assert plan["token"] == "(secret)" and plan["tasks"][0]["argv"] == ["a", "--password", "(secret)"]
    assert plan["tasks"][0]["env"] == {"HIDDEN": "(not shown)", "MY_TOKEN": "(not shown)", "PATH": "/bin"}


def test_a_file_that_is_broken_is_told_as_such(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder.own / "report.json").write_text("{")
    (folder.task("worker:0") / "outcome.json").write_text('{"cause": "token=abc"}')
    told = dict(values(folder, Redaction()))
    assert "Expecting property name" in told["report.json"]["cannot_be_read"]
    assert told["tasks/worker.0/outcome.json"] == {"cause": "token=(secret)"}
    (folder.own / "plan.json").write_text("{")
    assert "cannot_be_read" in plan_of(folder, Redaction())["unreadable"]
