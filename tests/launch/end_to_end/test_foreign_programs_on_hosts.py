"""Programs that know nothing of this launcher, with a relative folder, on two hosts that share no disk."""

import shutil
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

from tests.launch.end_to_end.test_foreign_programs import FLAGS, PROGRAMS
from tests.support.hosts import FakeHosts
from tests.support.hosts.fixture import hosts_here
from tests.support.launch.over_ssh import HostsFile

SPLIT = "train_logs/checkpoint names model.ckpt-20, but its values are not there: each ps writes into its own folder"
ON_ITS_OWN = "a ps reads and writes its part of a checkpoint on its own host: name a folder that all hosts share"


class Program(HostsFile):
    """A program of ``tests/launch/end_to_end/programs``, with its tasks on h1 and h2."""

    def __init__(self, hosts: FakeHosts, folder: Path, program: str, *words: str, **cluster: List[str]):
        super().__init__(hosts, folder, program)
        shutil.copy(str(PROGRAMS / f"{program}.py"), str(folder / "train.py"))
        command, restart = ["{python}", "train.py", *words], {"max": 2, "backoff_s": 0.1}
        self.put(command=command, cluster=cluster, restart=restart, leave_s=0)

    def begins(self, task: str) -> List[str]:
        """The lines of a task's attempts about their beginnings."""
        return [line for line in self.launch("logs", task).stdout.splitlines() if "begins at" in line]


Made = Callable[..., Program]


@pytest.fixture(scope="module")
def hosts() -> Iterator[FakeHosts]:
    with hosts_here(2) as two:
        yield two


@pytest.fixture
def program(hosts: FakeHosts, tmp_path: Path) -> Made:
    def made(name: str, *words: str, **cluster: List[str]) -> Program:
        return Program(hosts, tmp_path, name, *words, **cluster)

    return made


def test_a_split_checkpoint_is_named_when_it_is_saved_and_where_a_restart_cannot_read_it(program: Made) -> None:
    run = program("supervised", *FLAGS, ps=["h1"], worker=["h2"])
    ran = run.launch("up")
    assert ran.returncode == 1
    saved, failed = ran.stdout.index(f"warning: h2: {SPLIT}"), ran.stdout.index("worker:0@h2 failed")
    assert saved < failed
    hint = (
        "train_logs/model.ckpt-20; its values are not on this host; if a ps of another host wrote them, name a folder"
    )
    assert hint in run.status()["cause"]


@pytest.mark.nightly
def test_a_save_that_a_ps_on_another_host_cannot_do_ends_the_run_with_the_reason(program: Made) -> None:
    run = program("monitored", *FLAGS, ps=["h1"], worker=["h2", "h1"])
    ran = run.launch("up")
    assert ran.returncode == 1
    cause: Any = run.status()["cause"]
    assert "NotFoundError: From /job:ps/replica:0/task:0: logdir/model.ckpt-0_temp" in cause and ON_ITS_OWN in cause


def test_with_every_ps_on_the_chief_s_host_a_killed_chief_continues_without_a_shared_disk(program: Made) -> None:
    run = program("monitored", *FLAGS, ps=["h2"], worker=["h2", "h1"])
    ran = run.launch("up")
    assert ran.returncode == 0 and "warning" not in ran.stdout, ran.stdout
    first, second = (int(line.split()[-1]) for line in run.begins("worker:0"))
    assert first < 20 <= second


def test_ranks_that_find_their_checkpoint_on_one_host_alone_do_not_end_well(program: Made) -> None:
    run = program("ranks", "--save_dir=.", worker=["h1", "h2"])
    ran = run.launch("up")
    assert "--save_dir=. is a different folder on each host, and after a restart the workers find" in ran.stdout
    assert ran.returncode == 1 and "the ranks resume at different epochs" in run.status()["cause"]
