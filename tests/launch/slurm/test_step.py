"""The command line and the environment of a step, and the process that keeps one open."""

import os
import signal
import subprocess
import sys
from typing import List

from launch.agent.linux.open_files import readable
from launch.agent.linux.processes import inspect
from launch.slurm.srun import command, environment, holding
from tests.support.waiting import PATIENCE_S, eventually


def test_a_step_takes_all_of_the_job_on_one_node_and_leaves_it_to_others_too() -> None:
    words = command("gpu01", ["~/env/bin/python", "-c", "a b"])
    assert words[0] == "srun" and words[-3:] == ["/bin/sh", "-c", "exec ~/env/bin/python -c 'a b'"]
    assert {"--overlap", "--nodes=1", "--ntasks=1", "--nodelist=gpu01", "--mem=0", "--cpu-bind=none"} < set(words)
    assert "--unbuffered" not in words and "--unbuffered" in command("gpu01", ["python3"], raw=True)


def test_no_secret_and_no_option_of_the_batch_job_reaches_a_step() -> None:
    batch = {
        "SLURM_JOB_ID": "7", "SLURM_CONF": "/etc/s.conf", "SLURM_NTASKS": "8", "SLURM_CPUS_PER_TASK": "1",
        "SLURM_EXPORT_ENV": "NONE", "SRUN_CPUS_PER_TASK": "1", "TOKEN": "hunter2", "LD_LIBRARY_PATH": "/cuda",
    }  # fmt: skip
    assert environment(batch, ["TOKEN"]) == {
        "SLURM_JOB_ID": "7", "SLURM_CONF": "/etc/s.conf", "LD_LIBRARY_PATH": "/cuda",
    }  # fmt: skip


def step(program: str) -> "subprocess.Popen[bytes]":
    """A step's first process, as slurmstepd starts it."""
    argv: List[str] = holding([sys.executable, "-S", "-c", program])
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)


# What it leaves is in a session of its own and has lost its parent, as an agent has.
LEAVES = """
import os, time
if os.fork() == 0:
    os.setsid()
    for number in 0, 1, 2:
        os.close(number)
    if os.fork() == 0:
        time.sleep(100)
    os._exit(0)
print(os.getpid(), flush=True)
"""


def children(pid: int) -> List[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(each) for each in file.read().split()]


def test_a_step_lasts_as_long_as_what_its_program_left() -> None:
    with step(LEAVES) as held:
        assert held.stdout is not None
        program = int(held.stdout.readline())
        assert readable(held.stdout.fileno(), PATIENCE_S) and held.stdout.read() == b""  # though the step goes on
        eventually("an orphan alone", lambda: inspect(program) is None and len(children(held.pid)) == 1)
        assert held.poll() is None
        os.kill(children(held.pid)[0], signal.SIGKILL)
        assert held.wait(PATIENCE_S) == 0


def test_a_signal_to_a_whole_step_leaves_the_first_process_to_wait_for_the_others() -> None:
    program = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print(1, flush=True); input()"
    with step(program) as held:
        assert held.stdout is not None and held.stdout.readline() == b"1\n"
        os.kill(held.pid, signal.SIGTERM)
        assert not readable(held.stdout.fileno(), 0.1) and held.poll() is None
        os.killpg(held.pid, signal.SIGTERM)
        assert held.wait(PATIENCE_S) == 0
