"""A GPU is booked by one run of a host at a time, and the next one is told who holds it."""

import asyncio
import os
import stat
import subprocess
import sys
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, List

import pytest

from launch.agent.gpus.assignment import Bookings, GpuTaken, who_holds
from launch.agent.linux.sockets import free_ports
from tests.support.launch.launcher import Launcher
from tests.support.waiting import eventually


def names(number: int) -> List[str]:
    """GPUs that nobody else on this machine could have booked."""
    return [f"GPU-{uuid.uuid4()}" for _ in range(number)]


def test_a_gpu_that_is_free_can_be_booked_and_again_after_its_release() -> None:
    gpus = names(2)
    for _ in range(2):
        bookings = Bookings(gpus, "one")
        bookings.book({"worker:0": [0, 1]})
        bookings.release()


def test_a_second_run_is_told_the_task_the_gpu_and_the_holder_and_books_nothing() -> None:
    gpus = names(3)

    async def scene() -> None:
        first, second = Bookings(gpus, "run-1 (agent pid 7)"), Bookings(gpus, "run-2")
        first.book({"worker:0": [1]})
        await first.answer()
        loop = asyncio.get_event_loop()
        with pytest.raises(GpuTaken, match=r"^GPU 1 of worker:3 is held by run-1 \(agent pid 7\); end that run or"):
            await loop.run_in_executor(None, second.book, {"worker:2": [0], "worker:3": [1, 2]})
        third = Bookings(gpus, "run-3")
        third.book({"worker:0": [0, 2]})
        third.release()
        first.release()

    asyncio.run(scene())


def test_a_holder_that_is_killed_holds_nothing() -> None:
    gpus = names(1)
    book = f"from launch.agent.gpus.assignment import *; b = Bookings({gpus}, 'x'); b.book({{'w': [0]}})"
    hold = f"{book}; print('held', flush=True); input()"
    holder = subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(GpuTaken):
            Bookings(gpus, "y").book({"w": [0]})
    finally:
        holder.kill()
        holder.communicate()
    bookings = Bookings(gpus, "y")
    bookings.book({"w": [0]})
    bookings.release()


def test_a_gpu_that_nobody_holds_has_no_holder_to_name() -> None:
    assert who_holds(names(1)[0]) is None


SQUATTER = """
import os, socket, sys
os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
name = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
name.bind("\\0launch/gpu/" + sys.argv[1]); name.listen(16)
print("held", flush=True)
while True:
    caller = name.accept()[0]
    caller.sendall(b"\\x1b]0;owned\\x07\\x1b[2J your own run\\nrm -rf /" + b"!" * 10000)
    caller.close()
"""


@contextmanager
def squatted(gpu: str, user: int) -> Iterator[int]:
    """A process of a user that holds a GPU's name and says of itself what it likes; yields its pid."""
    argv = [sys.executable, "-c", SQUATTER, gpu, str(user)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
            yield holder.pid
        finally:
            holder.kill()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root: it becomes another user")
@pytest.mark.parametrize(("user", "named"), [(65534, "nobody (uid 65534)"), (54321, "with uid 54321")])
def test_a_name_that_another_user_holds_is_reported_with_that_user_whatever_it_says(user: int, named: str) -> None:
    (gpu,) = names(1)
    with squatted(gpu, user) as pid, pytest.raises(GpuTaken) as caught:
        Bookings([gpu], "mine").book({"worker:0": [0]})
    held = f"GPU 0 of worker:0 is held by pid {pid} of user {named}; end that run or choose another GPU"
    assert str(caught.value) == held


def test_what_a_holder_of_our_own_user_says_comes_without_control_characters_and_short() -> None:
    (gpu,) = names(1)
    with squatted(gpu, os.getuid()):
        held = str(who_holds(gpu))
    assert held.startswith("]0;owned [2J your own run rm -rf /!!!") and len(held) == 200 and held.isprintable()


def test_two_runs_of_one_host_never_get_the_same_gpu(tmp_path: Path) -> None:
    """Whole runs, with a driver's tool that tells of two GPUs."""
    gpus = names(2)
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\n" + "".join(f"echo 'GPU {i}: Fake (UUID: {name})'\n" for i, name in enumerate(gpus)))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    path = f"{tmp_path}:{os.environ['PATH']}"
    launcher = Launcher(tmp_path)
    for name, wish in (("first", "[1]"), ("second", "[1]"), ("third", "[0]")):
        (tmp_path / f"{name}.yaml").write_text(
            f"command: [sh, -c, 'echo sees $CUDA_VISIBLE_DEVICES; sleep 1000']\nworkdir: {tmp_path}/w\n"
            f"cluster: {{worker: [{{host: localhost, port: {free_ports(1)[0]}, gpus: {wish}}}]}}\n"
        )

    def launch(verb: str, name: str, *options: str) -> "subprocess.CompletedProcess[str]":
        launcher.file = tmp_path / f"{name}.yaml"
        return launcher(verb, *options, PATH=path)

    try:
        assert launch("up", "first", "-d").returncode == 0
        second = launch("up", "second", "-d")
        assert second.returncode == 3
        assert "localhost: GPU 1 of worker:0 is held by first-" in second.stderr
        assert launch("up", "third", "-d").returncode == 0
        eventually("its GPU", lambda: launch("logs", "third").stdout == "worker:0@localhost sees 0\n")
        assert launch("down", "first").returncode == 0
        assert launch("up", "second", "-d").returncode == 0
    finally:
        assert [launch("down", name).returncode for name in ("first", "second", "third")] == [0, 0, 0]
