"""However a run ends, the same is signalled and removed, by the same process, in the same order as ever.

Each file beside this one has the lines of one end: who, what, whom.
"""

import json
import os
import re
import signal
import sys
from itertools import groupby
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

import pytest

from tests.launch.end_to_end.ends import recorder
from tests.support.launch.launcher import LAUNCH, SHORT_LEASE, Launcher, finish
from tests.support.launch.machine import is_of_a_lease
from tests.support.waiting import eventually

HERE = Path(__file__).parent
# It ends with the code that it reads. A child outlives it only where the kernel kills it with its agent.
TASK = """
f={order}.{{role}}{{index}}; [ -p $f ] || mkfifo $f; exec 3<>$f
trap '{on_term}' TERM; sleep 1000 & echo up
read code <&3; kill $!; wait $!; exit $code
"""


# Folders of temporary files, and the records of them: gone with each attempt, in the order in which attempts end. And
# the file by which Python finds out where temporary files can be written.
TEMPORARY = re.compile(r"\|remove\|(?:/tmp/(?:launch-)?\w{8}|.*/attempt_\d+\.tmp)$")


class Noted(NamedTuple):
    who: str
    what: str
    whom: str

    def together(self) -> Tuple[str, str, str]:
        """What lines have in common that are of one moment."""
        return self.who, self.what, os.path.dirname(self.whom)


class Ends(Launcher):
    """A run on a Python that notes what its agents, keepers and verbs signal and remove."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.record, python = folder / "record", folder / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} {recorder.__file__} {self.record} {python} "$@"\n')
        python.chmod(0o755)
        self.python = str(python)

    def up(self, *arguments: str, on_term: str = "wait $!; exit 0", program: Sequence[str] = LAUNCH) -> Any:
        """``launch up``, once every task is up."""
        self.write(TASK.format(order=self.order, on_term=on_term), python=self.python)
        launcher = self.begin("up", *arguments, program=program)
        eventually("all tasks", self.all_up)
        eventually("its status", lambda: self.file_of("status")["state"] == "running")
        if "-d" in arguments:
            finish(launcher)
        self.record.unlink() if self.record.exists() else None  # what the start has removed
        return launcher

    def all_again(self) -> bool:
        """Whether the second attempt of every task is up."""
        return all("up\n" in self.log(task, 1) for task in ("ps:0", "worker:0", "worker:1"))

    def kill(self, *names: str) -> None:
        """Kill the agent, or its keeper, as the kernel does."""
        known = self.file_of("agent")
        for name in names:
            os.kill(known[name]["pid"], signal.SIGKILL)

    def exit(self, code: int, *tasks: str) -> None:
        """Have tasks end with a code."""
        for task in tasks:
            Path(f"{self.order}.{task}").write_text(f"{code}\n")

    def file_of(self, name: str) -> Dict[str, Any]:
        """A file of the run's agent."""
        (path,) = self.run_folder().glob(f"hosts/*/{name}.json")
        values: Dict[str, Any] = json.loads(path.read_text())
        return values

    def lines(self) -> List[str]:
        """What was noted: of signals the tasks, without the order where that is by pids or by a folder's listing."""
        text = self.record.read_text() if self.record.exists() else ""
        text = re.sub(r"\br-\d{8}-\d{6}\b", "RUN", text.replace(str(self.workdir), ""))
        noted = [Noted(*line.split("|")) for line in text.splitlines() if not TEMPORARY.search(line)]
        found: List[str] = []
        for (who, what, _), group in groupby(noted, key=Noted.together):
            whom = [each.whom.split(" of ")[-1] for each in group]
            is_ordered = what != "remove" and who == "agent"
            found += [f"{who} {what} {each}" for each in (dict.fromkeys(whom) if is_ordered else sorted(set(whom)))]
        return found


def stop(run: Ends) -> None:
    """Ctrl-C: the workers end, then the ps."""
    launcher = run.up()
    launcher.send_signal(signal.SIGINT)
    ran = finish(launcher)
    assert ran.returncode == 130
    assert "SIGINT: stopping the workers, then the ps; a second signal kills them at once" in ran.stdout
    assert ran.stdout.splitlines()[-1].endswith("stopped: SIGINT to launch up")


def kill(run: Ends) -> None:
    """Ctrl-C twice, with tasks that ignore the first."""
    launcher = run.up(on_term="")
    launcher.send_signal(signal.SIGINT)
    eventually("TERM", lambda: "SIGTERM" in (run.record.read_text() if run.record.exists() else ""))
    launcher.send_signal(signal.SIGINT)
    ran = finish(launcher)
    assert ran.returncode == 130 and "SIGINT: killing every task" in ran.stdout


def lease(run: Ends) -> None:
    """The launcher is killed."""
    launcher = run.up(program=[sys.executable, "-c", SHORT_LEASE])
    launcher.send_signal(signal.SIGKILL)
    finish(launcher)
    eventually("the end", lambda: not run.left())
    status = run.status()
    assert status["state"] == "stopped" and is_of_a_lease(status["cause"])


def down(run: Ends) -> None:
    run.up("-d")
    assert run("down").returncode == 0


def two_downs(run: Ends) -> None:
    run.up("-d")
    assert run("down").returncode == run("down").returncode == 0


def down_of_what_no_agent_ends(run: Ends) -> None:
    run.up("-d")
    run.kill("keeper", "agent")
    assert run("down").returncode == 0


def sweep(run: Ends) -> None:
    run.up("-d")
    run.kill("keeper", "agent")
    assert run("sweep", "--kill").returncode == 0


def next_agent(run: Ends) -> None:
    """The agent of an attached run is killed: its keeper ends the tasks, and the launcher starts another agent."""
    launcher = run.up()
    run.kill("agent")
    eventually("tasks", run.all_again)
    launcher.send_signal(signal.SIGINT)
    finish(launcher)


def successor(run: Ends) -> None:
    """The agent of a detached run is killed: the next one begins the tasks again, and ends them."""
    run.up("-d")
    run.kill("agent")
    eventually("tasks", run.all_again)
    assert run("down").returncode == 0


def failure(run: Ends) -> None:
    """A worker fails, and is not restarted."""
    launcher = run.up()
    run.exit(3, "worker1")
    assert finish(launcher).returncode == 1


def failed_start(run: Ends) -> None:
    """A program that is not there."""
    run.write(python=run.python, command=["/no/such/program"])
    assert finish(run.begin("up")).returncode == 3


def success(run: Ends) -> None:
    launcher = run.up()
    run.exit(0, "worker0", "worker1")
    assert finish(launcher).returncode == 0


ENDS: List[Callable[[Ends], None]] = [
    stop, kill, lease, down, two_downs, down_of_what_no_agent_ends, sweep, next_agent, successor, failure, failed_start,
    success,
]  # fmt: skip


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_an_end_signals_and_removes_what_it_always_has(end: Callable[[Ends], None], tmp_path: Path) -> None:
    run, kept = Ends(tmp_path), HERE / f"{end.__name__}.txt"
    end(run)
    assert run.left() == []
    lines = run.lines()
    (tmp_path / kept.name).write_text("".join(f"{line}\n" for line in lines))  # to look at, or to keep
    assert lines == kept.read_text().splitlines()
