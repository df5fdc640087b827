"""Whatever a task makes of the files that its agent reads: the agent goes on, at once, and reports what it can use."""

import json
import os
import resource
import time
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from cluster.protocol.heartbeat import PULSE, STACKS, Sign, read_sign
from cluster.protocol.outcome import OUTCOME, PROGRESS, Outcome, Progress, read_outcome, read_progress
from cluster.protocol.save_request import SAVE
from cluster.protocol.typed_json import to_values
from launch.agent.diagnosis.evidence import logs, values
from launch.agent.endings.exits import HANG_S
from launch.agent.protocol.messages import Event, Exited, Go, Joined, Started, decode, encode
from launch.agent.state import plan_file, temporary
from launch.agent.state.run_folder import RunFolder
from launch.agent.supervision.supervisor import Supervisor
from launch.agent.tasks.host_tasks import LINGER_S, HostTasks
from launch.agent.tasks.spawning import TaskShare
from launch.agent.text import Redaction
from launch.agent.verbs.logs import TaskLog
from launch.agent.wire.run_request import RunPlan, TaskPlan
from tests.launch.agent.hostile_files import FILES, nearly
from tests.support.agent.requested import run_request, task_request
from tests.support.waiting import eventually

pytestmark = pytest.mark.not_fast  # starts programs, by what it tests

TASK = "worker:0"
NAMES = [
    PROGRESS, OUTCOME, PULSE, STACKS, SAVE, f".{SAVE}.partial", "attempt_0.log", "attempt_0.log.times",
    "attempt_1.log", "attempt_1.log.times", "attempt_x.log",
]  # fmt: skip
SOON_S = 30.0  # a busy machine's; what blocks does so for ever
MOST_MEMORY_KB = 40 << 10


class Host:
    """One host's agent as far as its one task goes, with a lead's supervisor that gets what it reports."""

    def __init__(self, workdir: Path):
        self.folder = RunFolder(workdir, "r-20260101-000000", "h")
        self.folder.create()
        self.task = self.folder.task(TASK)
        self.events: List[Event] = []
        asked = task_request(TASK, argv=("sleep", "1000"), folder=str(workdir), chief=True)
        plan_file.write(self.folder, run_request(asked))
        self.tasks = HostTasks([asked], self.folder, TaskShare({TASK: []}), self.events.append, {})
        self.lead = Supervisor(RunPlan("r", "r", ["h"], [TaskPlan(TASK, "worker", 0, "h", "h:1", True, spare=False)]))
        self.lead.handle(Joined("h", "1"), 0.0)
        self.lead.handle(Go(), 0.0)
        self._reported = 0

    def poll(self, now: float) -> None:
        """One look; all that is reported can travel and is taken in by the lead."""
        self.tasks.poll(now)
        for event in self.events[self._reported :]:
            assert decode(encode(event)) == event or "NaN" in encode(event).decode()
            self.lead.handle(event, now)
        self._reported = len(self.events)
        assert json.dumps(to_values(self.lead.status()))

    def exits(self, count: int, now: float) -> None:
        """Looks until so many attempts have ended."""

        def ended() -> bool:
            self.poll(now)
            return len([event for event in self.events if isinstance(event, Exited)]) == count

        eventually("the end of an attempt", ended)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path)
    yield host
    while host.tasks.running:
        host.tasks.stop_all(0.0, 0.0)
        host.tasks.poll(1e6)
    for link in host.folder.path.glob("*/attempt_*.tmp"):
        temporary.remove(link)


def plant(host: Host, name: str, kind: str) -> None:
    """Makes a file this, whatever it was."""
    path = host.task / name
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    elif os.path.lexists(str(path)):
        path.unlink()
    FILES[kind](path)


def read_all(host: Host) -> None:
    """What the verbs that show a run's files read of them."""
    list(islice(TaskLog(host.folder, TASK, tail=10).lines(last=True), 10))
    list(values(host.folder, Redaction({}))), list(logs(host.folder, Redaction({}), 10_000))


@contextmanager
def soon_and_small() -> Iterator[None]:
    """What happens here takes no time and no memory to speak of."""
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert time.monotonic() - began < SOON_S
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY_KB


@pytest.mark.parametrize("kind", FILES)
def test_an_agent_outlives_files_of_every_kind_and_starts_the_next_attempt_of_the_task(host: Host, kind: str) -> None:
    host.tasks.start(TASK, 0)
    with soon_and_small():
        for name in NAMES:
            plant(host, name, kind)
        for now in (1.0, 3.0, 5.0):
            host.poll(now)
        host.tasks.save(TASK, 0, 1)
        host.tasks.stop(TASK, 0.0, 6.0, stack=True)
        host.poll(6.0)
        host.exits(1, 7.0 + LINGER_S + HANG_S / 2)
        host.tasks.start(TASK, 1)
        if isinstance(host.events[-1], Exited):  # what stands in its way is named
            assert str(host.task) in str(host.events[-1].cause)
        else:
            assert isinstance(host.events[-1], Started)
        host.poll(30.0)
    read_all(host)


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_outlives_whatever_a_task_makes_of_one_file_while_it_runs(host: Host, name: str) -> None:
    host.tasks.start(TASK, 0)
    with soon_and_small():
        for at, kind in enumerate(FILES):
            plant(host, name, kind)
            host.poll(1.0 + at / 100)
            host.tasks.save(TASK, 0, at)
        host.tasks.stop(TASK, 0.0, 6.0, stack=True)
        host.exits(1, 9.0)
    read_all(host)


def test_a_task_that_closes_its_own_folder_does_not_end_its_agent(host: Host) -> None:
    host.tasks.start(TASK, 0)
    host.task.rename(host.task.with_name("away"))
    host.task.write_text("no folder")
    for now in (1.0, 3.0):
        host.poll(now)
    host.tasks.stop(TASK, 0.0, 4.0)
    host.exits(1, 5.0)


RECORDS: Dict[str, Any] = {
    PROGRESS: (
        Progress(7, 0.5, 12.0, 100, 5, 1, 2, 0.5, "none", 1, 1, {"a": 1.0}, 5.0, {"a": 1.0}, 1.0, "none"),
        read_progress,
    ),
    OUTCOME: (Outcome(True, 7, "none", "none", True, "/nowhere/model-7", 7, {"a": 1.0}, 5.0, frames="x"), read_outcome),
    PULSE: (Sign(7, "step", 1.0, 2.0, 1.0, True, "nothing"), read_sign),
}


TEXTS = ("traceback", "frames")  # of several lines


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_read_as_it_was_written_or_refused_and_the_lead_can_use_it(host: Host, name: str) -> None:
    record, read = RECORDS[name]
    host.tasks.start(TASK, 0)
    taken = 0
    for seed in range(120):
        path = host.task / name
        path.write_bytes(nearly(asdict(record), seed))
        try:
            found = read(host.task)
        except ValueError as error:
            assert len(str(error)) < 600 and str(error).isprintable()
            found = None
        taken += found is not None
        assert found is None or all(_fit_to_show(value) for key, value in asdict(found).items() if key not in TEXTS)
        if name != OUTCOME:
            host.poll(10.0 + seed)
    assert 0 < taken < 120
    host.tasks.stop(TASK, 0.0, 400.0)
    host.exits(1, 405.0)


def _fit_to_show(value: Any) -> bool:
    return not isinstance(value, str) or value.isprintable() or value == "none"


def test_the_words_of_a_task_come_without_control_characters(host: Host) -> None:
    told = {"succeeded": False, "cause": "\x1b[2Jcleared\x1b]0;title\x07 \u202eno\ud800"}
    (host.folder.task(TASK)).mkdir()
    (host.task / OUTCOME).write_text(json.dumps(told))
    outcome = read_outcome(host.task)
    assert outcome is not None and outcome.cause == "[2Jcleared ]0;title no"
