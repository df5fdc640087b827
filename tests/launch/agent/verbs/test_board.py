"""TensorBoard on a host: shown while somebody looks, gone when nobody does. A stand-in takes TensorBoard's place."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

import pytest

from cluster.protocol.typed_json import to_values
from launch.agent.linux.processes import Process
from launch.agent.state.run_folder import RunFolder
from tests.support import ROOT
from tests.support.launch.machine import living_under
from tests.support.launch.statuses import history, status
from tests.support.waiting import PATIENCE_S, eventually

LISTENS = """import time
print('TensorBoard 9.9 at http://127.0.0.1:4711/ (Press CTRL+C to quit)', flush=True)
time.sleep(1000)"""
BREAKS = "print('ModuleNotFoundError: no such module')"
HOST = """from launch.agent import __main__
from launch.agent.verbs import board
board.LEASE_S = {lease_s}
__main__.run('board')"""


class Bench:
    """A working folder with one run, a stand-in for TensorBoard, and what the launcher would start."""

    def __init__(self, folder: Path):
        self.folder, self.run = folder, RunFolder(folder / "w", "r-20260101-000000", "h")
        self.viewers: List[subprocess.Popen[bytes]] = []

    def summaries(self) -> None:
        """The run has written some."""
        self.run.create()
        (self.run.path / "summaries").mkdir()
        (self.run.path / "summaries" / "events.out.tfevents.1.h").touch()

    def look(self, tensorboard: str = LISTENS, lease_s: float = 60.0) -> "subprocess.Popen[bytes]":
        """Starts the verb, as the launcher would."""
        package = self.folder / "python" / "tensorboard"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "main.py").write_text(f"import sys; print(sys.argv[1:])\n{tensorboard}\n", encoding="utf-8")
        env = {**os.environ, "PYTHONPATH": str(package.parent)}
        viewer = subprocess.Popen(
            [sys.executable, "-c", HOST.format(lease_s=lease_s)], env=env, cwd=str(ROOT),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.viewers.append(viewer)
        self.say(viewer, {"name": "r", "host": "h", "workdir": str(self.folder / "w")})
        return viewer

    def say(self, viewer: "subprocess.Popen[bytes]", values: Dict[str, Any]) -> None:
        assert viewer.stdin is not None
        viewer.stdin.write(json.dumps(values).encode() + b"\n")
        viewer.stdin.flush()

    def hear(self, viewer: "subprocess.Popen[bytes]") -> Dict[str, Any]:
        assert viewer.stdout is not None
        values: Dict[str, Any] = json.loads(viewer.stdout.readline().decode())
        return values

    def shown(self) -> Optional[Process]:
        """TensorBoard's process, which works in the run's folder."""
        return next(iter(living_under(self.run.path)), None)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    for viewer in bench.viewers:
        viewer.kill()
        viewer.wait(PATIENCE_S)
        for pipe in (viewer.stdin, viewer.stdout):
            if pipe is not None:
                pipe.close()


def test_where_tensorboard_listens_is_told_once_it_says_so(bench: Bench) -> None:
    bench.summaries()
    viewer = bench.look()
    assert bench.hear(viewer) == {"run": "r-20260101-000000", "port": 4711}
    assert bench.shown()


def test_tensorboard_goes_with_the_launcher(bench: Bench) -> None:
    bench.summaries()
    viewer = bench.look()
    bench.hear(viewer)
    assert viewer.stdin is not None
    viewer.stdin.close()
    assert viewer.wait(PATIENCE_S) == 0
    assert bench.shown() is None


def test_tensorboard_goes_when_its_keeper_is_killed(bench: Bench) -> None:
    bench.summaries()
    viewer = bench.look()
    bench.hear(viewer)
    viewer.kill()
    eventually("the end of TensorBoard", lambda: bench.shown() is None)


def test_tensorboard_goes_when_nothing_is_heard_of_the_launcher(bench: Bench) -> None:
    bench.summaries()
    viewer = bench.look(lease_s=0.2)
    assert viewer.wait(PATIENCE_S) == 0
    assert bench.shown() is None


def test_a_launcher_that_is_heard_of_keeps_it(bench: Bench) -> None:
    bench.summaries()
    viewer = bench.look(lease_s=2.0)
    bench.hear(viewer)
    for _ in range(25):
        bench.say(viewer, {"beat": True})
        with pytest.raises(subprocess.TimeoutExpired):
            viewer.wait(0.1)
    assert bench.shown()


def test_the_last_words_of_a_tensorboard_that_ends_are_told(bench: Bench) -> None:
    bench.summaries()
    viewer = bench.look(BREAKS)
    assert bench.hear(viewer) == {"error": "TensorBoard ended; its last lines: ModuleNotFoundError: no such module"}
    assert viewer.wait(PATIENCE_S) == 0


def test_a_run_without_summaries_is_told_of(bench: Bench) -> None:
    bench.run.create()
    error = bench.hear(bench.look())["error"]
    assert error.startswith(f"r-20260101-000000 has no summaries in {bench.run.path}; ")


def test_a_run_with_a_curve_alone_is_shown_and_what_is_made_for_it_goes_with_the_launcher(bench: Bench) -> None:
    bench.run.create()
    bench.run.write("status.json", to_values(status(history=history([(5, 1.0), (10, 0.5)]))))
    viewer = bench.look()
    assert bench.hear(viewer) == {"run": "r-20260101-000000", "port": 4711}
    assert list(bench.run.own.glob("board-*"))
    assert viewer.stdin is not None
    viewer.stdin.close()
    assert viewer.wait(PATIENCE_S) == 0
    assert not list(bench.run.own.glob("board-*"))


# Writes a curve twice, with a damaged status between, and prints what TensorBoard reads of it.
WRITES = """
import glob, itertools, json, sys
from launch.agent.verbs.board_curve import follow, writer_of
path, folder, texts = sys.argv[1], sys.argv[2], json.load(sys.stdin)
def turns():
    for text in texts:
        open(path, "w").write(text)
        yield 0.0
follow(path, writer_of(folder), turns())
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
found = [event for name in glob.glob(folder + "/*") for event in EventFileLoader(name).Load()]
values = [(event.step, value.tag, value.simple_value or value.tensor.float_val[0])
          for event in found for value in event.summary.value]
print(json.dumps(values))
"""


def test_tensorboard_reads_the_points_of_a_curve_each_once(bench: Bench) -> None:
    begun = status(state="running", history=history([(5, 2.0), (10, 1.0)], evaluations=[{"step": 5, "auc": 0.75}]))
    ended = status(state="succeeded", history=history([(5, 2.0), (10, 0.5)], evaluations=[{"step": 5, "auc": 0.75}]))
    texts = [json.dumps(to_values(begun)), "{", json.dumps(to_values(ended))]
    argv = [sys.executable, "-c", WRITES, str(bench.folder / "status.json"), str(bench.folder / "curve")]
    found = subprocess.run(argv, input=json.dumps(texts).encode(), cwd=str(ROOT), stdout=subprocess.PIPE, check=True)
    values = [value for value in json.loads(found.stdout.decode()) if value[1] != "curve/steps per second"]
    assert values == [[5, "curve/auc", 0.75], [5, "curve/loss", 2.0], [10, "curve/loss", 0.5]]


def test_a_name_without_runs_is_told_of(bench: Bench) -> None:
    assert bench.hear(bench.look()) == {"error": "no run of the name r has been on this host"}


def test_tensorboard_runs_in_the_environment_of_the_tasks_and_its_lack_there_is_told_with_what_mends_it(
    bench: Bench,
) -> None:
    bench.summaries()
    bench.run.write("plan.json", {"environment": "e1"})
    python = bench.folder / "w" / "envs" / "e1" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')  # without any package
    python.chmod(0o755)
    advice = f"install it with `{python} -m pip install tensorboard`"
    assert bench.hear(bench.look()) == {"error": f"no TensorBoard in {python}; {advice}"}
