"""``import launch``: a run from Python, with the same functions as the verbs, and no handler of a signal."""

import _thread
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable, List

import pytest

import launch
from launch import api
from launch.errors import CannotStart, FoundWrong, Interrupted, RunFailed, UsageError
from launch.run.lifecycle import Ended
from launch.signals import Interrupts
from launch.teardown import Left
from launch.view import notebook_view
from tests.support import ROOT
from tests.support.launch.launcher import Launcher
from tests.support.launch.statuses import status
from tests.support.waiting import PATIENCE_S, let_pass

EXAMPLES = ROOT / "docs" / "examples" / "python"
# Reports a step, and goes on until a file is there.
FIT = """echo '{{"step": 7, "loss": 0.5}}' >> $LAUNCH_PROGRESS; echo up; until [ -e {go} ]; do sleep 0.1; done"""


@pytest.fixture(autouse=True)
def no_handler_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook's kernel keeps its own handlers, also while a call lasts."""

    def refuse(number: int, handler: object) -> None:
        if number != signal.SIGALRM:  # pytest's own, for the time that a test may take
            pytest.fail(f"expected no handler of signal {number}, found {handler}")

    monkeypatch.setattr(signal, "signal", refuse)


def test_a_host_that_imports_the_package_loads_nothing_of_the_interface() -> None:
    listed = "import sys; before = set(sys.modules); import launch, cluster; print(*set(sys.modules) - before)"
    ran = subprocess.run([sys.executable, "-c", listed], cwd=str(ROOT), stdout=subprocess.PIPE, check=True, text=True)
    ours = {name for name in ran.stdout.split() if name.split(".")[0] in ("launch", "cluster", "click", "tensorflow")}
    assert ours == {"launch", "cluster", "cluster.task", "cluster.errors"}


def test_the_packages_have_their_names_and_no_others() -> None:
    assert (launch.up, launch.runs, launch.Run) == (api.up, api.runs, api.Run)
    with pytest.raises(AttributeError, match="module 'launch' has no attribute 'down'"):
        launch.down  # type: ignore[attr-defined]  # noqa: B018


def test_a_run_is_started_followed_read_and_ended(launch: Launcher) -> None:
    launch.write(FIT.format(go=launch.folder / "go"))
    run = api.up(launch.file)
    assert run.status.state == "running" and run.name == run.status.run == api.status(launch.file).run
    with pytest.raises(TimeoutError, match="found it running"):
        run.wait(0)
    (launch.folder / "go").touch()
    assert run.wait(PATIENCE_S).loss == 0.5
    assert run.history() == run.status.history and run.history().loss
    assert [each.run for each in api.runs(launch.file)] == [run.name]
    assert "worker:1@localhost up\n" in run.logs("worker:1")
    assert "no process, port" in run.down()[0] and api.Run(launch.file).name == run.name


def test_a_run_that_fails_raises_its_cause(launch: Launcher) -> None:
    launch.write("exit 3")
    with pytest.raises(RunFailed, match=r"r-.* failed: .*exit code 3") as raised:
        api.up(str(launch.file)).wait(PATIENCE_S)
    assert (raised.value.state, raised.value.exit_code) == ("failed", 1)


def test_values_keep_their_types() -> None:
    given = {"a": 1e-05, "b": "0.1", "c": None, "d": [1, {"e": True}], "f": 3}
    written = dict(text.split("=", 1) for text in api._written(given))
    assert {key: json.loads(text) for key, text in written.items()} == given


@pytest.mark.parametrize("value", [float("nan"), object()])
def test_a_value_that_no_hosts_file_can_have_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="set: expected values of JSON"):
        api.up("hosts.yaml", set={"args.x": value})


def test_a_source_without_resume_is_refused() -> None:
    with pytest.raises(UsageError, match="run: expected resume=True together with run"):
        api.up("hosts.yaml", run="r-1")


def ends_the_wait() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def comes_just_before_the_wait() -> None:
    let_pass(0.1)  # until the main thread waits
    _thread.interrupt_main()  # marks the signal, and wakes nobody


@pytest.mark.parametrize("ctrl_c", [ends_the_wait, comes_just_before_the_wait])
def test_ctrl_c_undoes_a_start_and_is_raised_again(ctrl_c: Callable[[], None]) -> None:
    stopped: List[int] = []

    def begin(interrupts: Interrupts) -> Ended:
        ctrl_c()
        interrupted = threading.Event()
        while not interrupts.received:
            interrupted.wait(0.01)
        stopped.extend(interrupts.received)
        raise Interrupted(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        api._undone_on_ctrl_c(begin)
    assert stopped == [signal.SIGINT]


def test_leftovers_are_an_error(monkeypatch: pytest.MonkeyPatch, launch: Launcher) -> None:
    launch.write()
    monkeypatch.setattr(api, "look_and_take_down", lambda *_, **__: Left({}, [CannotStart([])], {}))  # type: ignore[list-item]
    with pytest.raises(FoundWrong) as raised:
        api.Run(launch.file, "r-20261120-120000").down()
    assert raised.value.exit_code == 4


def test_a_run_is_shown_by_its_bar_and_its_lines() -> None:
    shown = notebook_view.as_html(status(global_step=5, steps=20, loss=0.25, cause="<b>"))
    assert '<progress value="5" max="20"' in shown and "step 5/20 (25 %)" in shown and "cause: &lt;b&gt;" in shown
    assert "<progress" not in notebook_view.as_html(status())


def test_a_run_shown_twice_has_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: List[str] = []

    class Display:
        """The module of IPython, and a cell of it."""

        HTML = str

        def display(self, picture: str, display_id: bool) -> "Display":
            shown.append("new")
            return self

        def update(self, picture: str) -> None:
            shown.append("again")

    monkeypatch.setattr(notebook_view, "import_module", lambda name: Display())
    monkeypatch.setattr(notebook_view, "_in_notebook", lambda: True)
    view = notebook_view.NotebookView()
    view.show(status())
    view.show(status())
    assert shown == ["new", "again"]


EVENT = {"name": "line", "run": "line-1", "state": "succeeded", "step": 20, "metrics": {"loss": 0.5, "auc": None}}
# What stands for a package that is not installed: it prints each call.
STAND_IN = """
import sys
class Called:
    def __init__(self, name): self._name = name
    def __getattr__(self, name): return Called(f"{self._name}.{name}")
    def __call__(self, *args, **kwargs): print(self._name, args, kwargs); return self
    def __enter__(self): return self
    def __exit__(self, *_): pass
sys.modules[__name__] = Called(__name__)
"""


@pytest.mark.parametrize(
    ("script", "package", "logged"),
    [
        ("log_to_mlflow.py", "mlflow", "mlflow.log_metrics ({'loss': 0.5},) {'step': 20}"),
        ("log_to_wandb.py", "wandb", "wandb.init.summary.update ({'loss': 0.5},) {}"),
    ],
)
def test_an_example_logs_the_end_of_a_run(script: str, package: str, logged: str, tmp_path: Path) -> None:
    """With the package itself where it is installed, without a network."""
    here = importlib.util.find_spec(package) is not None
    if not here:
        (tmp_path / f"{package}.py").write_text(STAND_IN)
    env = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "MLFLOW_TRACKING_URI": f"file:{tmp_path}/m",
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "WANDB_MODE": "offline",
    }
    argv = [sys.executable, str(EXAMPLES / script)]
    ran = subprocess.run(
        argv, cwd=str(tmp_path), env=env, input=json.dumps(EVENT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    assert here or logged in ran.stdout.splitlines()
