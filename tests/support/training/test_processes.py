"""Tasks of a test end with the test's process, however that one ends."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from launch.agent.linux.processes import inspect, is_same
from tests.support import ROOT
from tests.support.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.not_fast  # starts processes, by what it tests
STARTS = """
import sys, time
from pathlib import Path
from tests.support.training import processes
processes.PROGRAM = [sys.executable, "-c", "import time; time.sleep(1000)"]
cluster = processes.Cluster(Path(sys.argv[1]), "a job", ps=0, workers=1)
cluster.start("worker", 0, {})
print(cluster.running["worker", 0].pid, flush=True)
time.sleep(1000)
"""


def test_a_killed_session_leaves_no_task(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", STARTS, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=str(ROOT)) as session:
        assert session.stdout is not None
        task = inspect(int(session.stdout.readline()))
        session.send_signal(signal.SIGKILL)
        session.wait(PATIENCE_S)
    assert task is not None
    pid, start = task.pid, task.start
    eventually("the end of the task", lambda: not is_same(pid, start))
