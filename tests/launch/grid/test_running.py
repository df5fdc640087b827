"""The runs of a grid among fakes: one after the other, stopped in order, waiting for busy hosts, continued."""

import json
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest

from cluster.spec.model import Spec
from launch.errors import CannotStart, HostProblem, Interrupted, LaunchError, ProblemKind, UsageError
from launch.grid import running
from launch.grid.points import GridPoint, GridReport, axes, overrides, points
from launch.grid.record import GridFolder
from launch.grid.running import Grid
from launch.run.draft import RunStart
from launch.run.lifecycle import Display, Ended
from launch.signals import Interrupts, NoSignals
from launch.status.run import KnownRun, RunRecord, RunsAnswer
from launch.target import Target
from tests.support.launch.statuses import status
from tests.support.waiting import let_pass

OPTIONS = ["env.all.X=1,2,3"]
BUSY = CannotStart([HostProblem("a", ProblemKind.REFUSED, "port 2222 is taken")])
Train = Callable[[Spec, NoSignals, Display], str]  # returns the state of the run


class Scene:
    """A grid of three points, whose runs are a function."""

    def __init__(self, folder: Path):
        self.file = folder / "hosts.yaml"
        self.file.write_text("name: r\ncommand: [a]\ncluster: {worker: [a]}\n" + f"workdir: {folder}/w\n")
        self.interrupts = Interrupts()  # not entered: a test appends to ``received``
        self.trained: List[str] = []
        self.resumed: List[bool] = []
        self.shown: List[GridReport] = []
        self.train: Train = lambda spec, interrupts, display: "succeeded"
        self.step: Optional[int] = 1  # the last one of each run
        self.is_halted = False

    def trains_a_job(self) -> Path:
        """Make the command a job, and return its file."""
        job = self.file.parent / "job.py"
        job.write_text("one")
        self.file.write_text(self.file.read_text().replace("command: [a]", "job: job.py").replace("{w", "{ps: [b], w"))
        return job

    def run(self, at_once: int = 1, fresh: bool = False) -> Dict[str, str]:
        """Run the grid, and return the state of each point."""
        target = Target(str(self.file))
        folder, found = GridFolder(target, target.of_file(), OPTIONS, [target.job(target.of_file())]), axes(OPTIONS)
        with folder.held():
            planned = points("r", found)
            begun = planned if fresh else folder.begun(planned)
            grid = Grid(
                target, overrides(found), spec=target.of_file(), folder=folder, points=begun,
                interrupts=self.interrupts, show=self.shown.append, say=print,
            )  # fmt: skip
            outcome = grid.train(at_once)
        self.is_halted = grid.is_halted
        return {point.name: point.state for point in outcome.points}

    def stand_in(
        self, target: Target, start: RunStart, interrupts: NoSignals, ending: object, display: Display
    ) -> Ended:
        """Take the place of the launcher of a run."""
        self.trained.append(f"{start.spec.name} X={start.spec.tasks[0].env['X']}")
        self.resumed.append(start.resume)
        state = self.train(start.spec, interrupts, display)
        return Ended(0, status(state=state, loss=float(start.spec.name[-1]), global_step=self.step))


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    made = Scene(tmp_path)
    monkeypatch.setattr(running, "train_with_failover", made.stand_in)
    monkeypatch.setattr(running, "LOOK_S", 0.001)
    monkeypatch.setattr(running, "BUSY_S", 0.001)
    yield made


def test_the_points_run_one_after_the_other_and_a_second_time_nothing_is_left_to_do(scene: Scene) -> None:
    together: List[int] = []
    scene.train = lambda spec, *_: together.append(threading.active_count()) or "succeeded"  # type: ignore[func-returns-value]
    assert set(scene.run().values()) == {"succeeded"}
    assert scene.trained == ["r.1 X=1", "r.2 X=2", "r.3 X=3"] and len(set(together)) == 1
    assert scene.shown[-1].best == "r.1"
    scene.run()
    assert len(scene.trained) == 3
    scene.run(fresh=True)
    assert len(scene.trained) == 6


def test_as_many_points_as_asked_for_run_at_a_time_each_started_once_the_one_before_is_up(scene: Scene) -> None:
    both = threading.Barrier(2, timeout=20)

    def meet(spec: Spec, interrupts: NoSignals, display: Display) -> str:
        begun = len(scene.trained)
        let_pass(0.05)  # for a point that must not start yet
        assert len(scene.trained) == begun
        display.view.show(status(state="running"))
        if spec.name != "r.3":
            both.wait()
        return "succeeded"

    scene.train = meet
    assert set(scene.run(at_once=2).values()) == {"succeeded"}


def wait_for_a_signal(spec: Spec, interrupts: NoSignals, display: Display) -> str:
    """A run that goes on until it is told to stop."""
    display.view.show(status(state="running"))
    waiting = threading.Event()
    while not interrupts.received:
        waiting.wait(0.001)
    return "stopped"


def test_ctrl_c_stops_every_run_and_the_same_command_continues(scene: Scene) -> None:
    def second_is_interrupted(spec: Spec, interrupts: NoSignals, display: Display) -> str:
        if spec.name == "r.1":
            return "succeeded"
        scene.interrupts.received.append(2)
        return wait_for_a_signal(spec, interrupts, display)

    scene.train = second_is_interrupted
    assert scene.run() == {"r.1": "succeeded", "r.2": "stopped", "r.3": "waiting"}
    scene.interrupts.received.clear()
    scene.train = lambda *_: "succeeded"
    assert set(scene.run().values()) == {"succeeded"}
    assert scene.trained == ["r.1 X=1", "r.2 X=2", "r.2 X=2", "r.3 X=3"]


def test_a_host_on_which_an_interrupted_start_may_have_left_an_agent_is_named(scene: Scene, capsys: Any) -> None:
    def interrupt(spec: Spec, interrupts: NoSignals, display: Display) -> str:
        scene.interrupts.received.append(2)
        raise Interrupted(2, [HostProblem("b", ProblemKind.SILENT, "no answer within 10 s")])

    scene.train = interrupt
    assert scene.run() == {"r.1": "stopped", "r.2": "waiting", "r.3": "waiting"}
    assert capsys.readouterr().out == "r.1: b: no answer within 10 s\n"


def test_a_job_that_was_cut_off_resumes_from_its_checkpoint(scene: Scene) -> None:
    scene.trains_a_job()

    def interrupt(spec: Spec, interrupts: NoSignals, display: Display) -> str:
        scene.interrupts.received.append(2)
        return wait_for_a_signal(spec, interrupts, display)

    scene.train = interrupt
    scene.run()
    scene.interrupts.received.clear()
    scene.train = lambda *_: "succeeded"
    scene.run()
    assert scene.resumed == [False, True, False, False]


def test_an_unexpected_error_stops_the_other_runs_in_order(scene: Scene) -> None:
    stopped: List[str] = []

    def fail(spec: Spec, interrupts: NoSignals, display: Display) -> str:
        if spec.name == "r.2":
            raise ZeroDivisionError
        stopped.append(wait_for_a_signal(spec, interrupts, display))
        return "stopped"

    scene.train = fail
    with pytest.raises(ZeroDivisionError):
        scene.run(at_once=2)
    assert stopped == ["stopped"]


def test_no_further_point_begins_where_the_record_cannot_be_written(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(GridFolder, "write", refuse)
    with pytest.raises(LaunchError, match="cannot write the grid's record: No space left on device"):
        scene.run()
    assert scene.trained == ["r.1 X=1"]


def test_a_run_that_somebody_else_has_stopped_is_not_tried_again_now(scene: Scene) -> None:
    scene.train = lambda spec, *_: "stopped" if spec.name == "r.1" else "succeeded"
    assert scene.run() == {"r.1": "stopped", "r.2": "succeeded", "r.3": "succeeded"}
    assert len(scene.trained) == 3


def test_a_point_whose_hosts_are_busy_waits_for_them(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = [BUSY, BUSY]
    monkeypatch.setattr(Grid, "_is_busy", lambda self, error: error is BUSY)

    def refuse(spec: Spec, *_: object) -> str:
        if refusals:
            raise refusals.pop()
        return "succeeded"

    scene.train = refuse
    assert set(scene.run().values()) == {"succeeded"}
    assert scene.trained[:3] == ["r.1 X=1"] * 3
    causes = [report.points[0].cause for report in scene.shown]
    assert "a: port 2222 is taken" in causes and causes[-1] is None


@pytest.mark.parametrize(
    ("kind", "lives", "is_busy"),
    [
        (ProblemKind.REFUSED, True, True),
        (ProblemKind.REFUSED, False, False),  # a program is missing, for example
        (ProblemKind.UNREACHABLE, True, False),
    ],
)
def test_hosts_are_busy_where_they_refuse_a_run_while_another_lives_there(
    kind: ProblemKind, lives: bool, is_busy: bool, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = [CannotStart([HostProblem("a", kind, "no")])]
    known = RunsAnswer([KnownRun(1, lives, RunRecord("other-1", "other"))])
    monkeypatch.setattr(Target, "reach_hosts", lambda self: nullcontext())
    monkeypatch.setattr(running, "ask_for_runs", lambda fleet: ({"a": known}, []))

    def refuse(*_: object) -> str:
        if refusals:
            raise refusals.pop()
        return "succeeded"

    scene.train = refuse
    if is_busy:
        assert set(scene.run().values()) == {"succeeded"}
    else:
        with pytest.raises(CannotStart):
            scene.run()


@pytest.mark.parametrize("error", [LaunchError("a mistake in the job"), CannotStart([])])
def test_a_point_that_cannot_start_for_another_reason_ends_the_grid(scene: Scene, error: LaunchError) -> None:
    def refuse(*_: object) -> str:
        raise error

    scene.train = refuse
    with pytest.raises(LaunchError) as raised:
        scene.run()
    assert raised.value is error and scene.trained == ["r.1 X=1"]


def test_another_hosts_file_is_refused_with_what_differs(scene: Scene) -> None:
    scene.run()
    scene.file.write_text(scene.file.read_text() + "# a comment alone changes nothing\n")
    scene.run()
    scene.file.write_text(scene.file.read_text().replace("command: [a]", "command: [b]"))
    with pytest.raises(UsageError, match=r'(?s)restore it, or begin again with --fresh:\ncommand: .*"a".*found .*"b"'):
        scene.run()
    assert set(scene.run(fresh=True).values()) == {"succeeded"}


def test_a_point_that_failed_is_tried_again_by_the_same_command_after_the_others(scene: Scene) -> None:
    scene.trains_a_job()
    scene.train = lambda spec, *_: {"r.1": "failed", "r.2": "stopped"}.get(spec.name, "succeeded")
    assert scene.run() == {"r.1": "failed", "r.2": "stopped", "r.3": "succeeded"} and not scene.is_halted
    scene.train = lambda *_: "succeeded"
    assert set(scene.run().values()) == {"succeeded"}
    assert [each[:3] for each in scene.trained] == ["r.1", "r.2", "r.3", "r.2", "r.1"]
    assert scene.resumed == [False, False, False, True, True]


@pytest.mark.parametrize("step", [None, 0])
def test_where_every_point_failed_before_its_first_step_no_further_one_begins(
    scene: Scene, step: Optional[int]
) -> None:
    scene.trains_a_job()
    scene.train, scene.step = lambda *_: "failed", step
    assert scene.run() == {"r.1": "failed", "r.2": "waiting", "r.3": "waiting"} and scene.is_halted
    assert scene.run() == {"r.1": "failed", "r.2": "failed", "r.3": "waiting"}
    scene.train, scene.step = lambda spec, *_: "failed" if spec.name == "r.1" else "succeeded", 1
    assert scene.run() == {"r.1": "failed", "r.2": "succeeded", "r.3": "succeeded"} and not scene.is_halted


def test_a_point_that_trains_shows_that_not_every_point_fails(scene: Scene) -> None:
    scene.trains_a_job()
    scene.train = lambda spec, *_: "failed" if spec.name == "r.2" else "succeeded"
    scene.run()
    scene.step = None
    assert scene.run() == {"r.1": "succeeded", "r.2": "failed", "r.3": "succeeded"} and not scene.is_halted


def test_a_program_whose_steps_are_unknown_stops_no_other_point(scene: Scene) -> None:
    scene.train, scene.step = lambda *_: "failed", None
    assert set(scene.run().values()) == {"failed"} and not scene.is_halted


def test_other_code_is_refused_with_the_names_of_its_files(scene: Scene) -> None:
    job = scene.trains_a_job()
    scene.run()
    (job.parent / "plot.py").write_text("new")
    (job.parent / "data.csv").write_text("new")
    scene.run()
    job.write_text("two")
    with pytest.raises(UsageError, match=r"^job\.py has changed since the grid began; restore it, or begin again"):
        scene.run()
    job.unlink()
    job.with_name("other.py").write_text("one")
    scene.file.write_text(scene.file.read_text().replace("job.py", "other.py"))
    with pytest.raises(UsageError, match="the hosts file has changed"):
        scene.run()
    assert len(scene.trained) == 3 and set(scene.run(fresh=True).values()) == {"succeeded"}


def test_code_that_changes_while_the_grid_runs_keeps_further_points_from_their_start(scene: Scene) -> None:
    job = scene.trains_a_job()
    scene.train = lambda *_: str(job.write_text("two") and "succeeded")
    with pytest.raises(UsageError, match=r"^job\.py has changed since the grid began"):
        scene.run()
    assert len(scene.trained) == 1


def test_a_record_of_an_older_launcher_has_no_code_and_is_continued(scene: Scene) -> None:
    scene.run()
    (record,) = (scene.file.parent / "w").glob("local/grids/*/grid.json")
    values = json.loads(record.read_text())
    assert values.pop("code") == {}
    record.write_text(json.dumps(values))
    scene.run()
    assert len(scene.trained) == 3


def test_two_launchers_of_one_grid_are_refused(scene: Scene) -> None:
    target = Target(str(scene.file))
    mine = GridFolder(target, target.of_file(), OPTIONS, [target.job(target.of_file())])
    with mine.held(), pytest.raises(UsageError, match="expected no other launcher of this grid, found one"):
        scene.run()


def test_a_damaged_record_is_refused_with_the_next_step(scene: Scene) -> None:
    scene.run()
    (record,) = (scene.file.parent / "w").glob("local/grids/*/grid.json")
    record.write_text('{"file": 3}')
    with pytest.raises(UsageError, match=r"expected the record of a grid, found .*; begin again with --fresh"):
        scene.run()


def test_checkpoints_of_points_lie_apart_in_a_shared_folder(scene: Scene) -> None:
    scene.file.write_text(
        scene.file.read_text().replace("command: [a]", "job: digits\ntrain: {checkpoint: {dir: /c}}")
        .replace("{w", "{ps: [b], w")
    )  # fmt: skip
    found: List[Optional[str]] = []
    scene.train = lambda spec, *_: found.append(spec.train.checkpoint.dir) or "succeeded"  # type: ignore[func-returns-value]
    scene.run()
    assert found == ["/c/r.1", "/c/r.2", "/c/r.3"]


def test_a_point_is_the_same_after_its_record(scene: Scene) -> None:
    target = Target(str(scene.file))
    folder = GridFolder(target, target.of_file(), OPTIONS, [target.job(target.of_file())])
    kept = [GridPoint("r.1", {"env.all.X": 1}, state="stopped", run="r.1-2026", global_step=3)]
    with folder.held():
        folder.write(kept)
        assert folder.begun([]) == kept
