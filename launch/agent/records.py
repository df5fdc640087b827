"""Which processes are a run's: what its agent wrote down while it lived, held against the process table.

    agent.json       the agent and its keeper: {"boot", "agent": {"pid", "start"}, "keeper": {…}}
    processes.json   its tasks: {"boot", "leaders": [{"pid", "start"}], "others": […]}

A pid alone names nobody, since the kernel gives it away again; a pid and a start time name one
process until the machine boots anew, so the boot is on record too. ``others`` are the leaders'
descendants, in whatever session they are. They are noted every few seconds; one that is
younger than that is still known by the session of its leader and the run in its environment.
"""

from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional

from launch.agent.folder import RunFolder
from launch.agent.processes import Process, environment, inspect, table

AGENT, TASKS = "agent.json", "processes.json"
NOTE_S = 2.0
Name = Dict[str, int]  # {"pid", "start"}, which only one process has until the machine boots


def boot() -> str:
    """A name of this boot of this machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def write_agent(folder: RunFolder, agent: Process, keeper: Process) -> None:
    """Records who serves the run on this host."""
    folder.write(AGENT, {"boot": boot(), "agent": _name(agent), "keeper": _name(keeper)})


class ProcessRecord:
    """The record of the tasks' processes, kept by the agent, which is the only one that writes it.

    Args:
      agent: pid of the process whose children the tasks are.
    """

    def __init__(self, folder: RunFolder, agent: int):
        self._folder, self._agent = folder, agent
        self._leaders: List[Name] = []
        self._written: Dict[str, Any] = {}
        self._note_at = 0.0

    def began(self, leader: int) -> None:
        """A task was started: its leader is on record before anybody is told."""
        process = inspect(leader)
        self._leaders += [_name(process)] if process else []
        self._write()

    def note(self, now: float) -> None:
        """Notes the tasks' descendants, every ``NOTE_S``."""
        if now >= self._note_at:
            self._note_at = now + NOTE_S
            self._write()

    def _write(self) -> None:
        others = [name for name in map(_name, descendants(table(), self._agent)) if name not in self._leaders]
        record = {"boot": boot(), "leaders": [*self._leaders], "others": others}
        if record != self._written and self._folder.note(TASKS, record):
            self._written = record


def descendants(processes: Iterable[Process], ancestor: int) -> List[Process]:
    """The living children of a process, their children, and so on."""
    children: Dict[int, List[Process]] = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process)
    found, unseen = [], [ancestor]
    while unseen:
        below = children.get(unseen.pop(), [])
        found += [process for process in below if process.state != "Z"]
        unseen += [process.pid for process in below]
    return sorted(found)


def is_of_this_boot(folder: RunFolder) -> bool:
    """Whether the run was on this machine since it booted, under whatever name."""
    return _of_this_boot(folder.read(AGENT)) is not None


def agent_of(folder: RunFolder) -> List[Process]:
    """The run's agent and its keeper on this host, those that live."""
    record = _of_this_boot(folder.read(AGENT))
    return _living([record["agent"], record["keeper"]]) if record else []


def tasks_of(folder: RunFolder) -> List[Process]:
    """The living processes of the run's tasks on this host."""
    record = _of_this_boot(folder.read(TASKS))
    if record is None:
        return []
    named = _living([*record["leaders"], *record["others"]])
    leaders = {leader["pid"]: leader["start"] for leader in record["leaders"]}
    known = {process.pid for process in named}
    return named + [p for p in table() if p.pid not in known and _is_of_session(p, leaders, folder.run)]


def _is_of_session(process: Process, leaders: Mapping[int, int], run: str) -> bool:
    """Whether a process belongs to a recorded leader's session, and not to one that got its number since."""
    began = leaders.get(process.session, leaders.get(process.group))
    if began is None or process.start < began or process.state == "Z":
        return False
    return environment(process.pid).get("LAUNCH_RUN") == run


def _of_this_boot(record: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
    """A record, unless it is from before the machine booted: then it names nobody."""
    return record if record and record.get("boot") == boot() else None


def _living(names: Iterable[Name]) -> List[Process]:
    seen = [(name["start"], inspect(name["pid"])) for name in names]
    return [process for start, process in seen if process and process.start == start and process.state != "Z"]


def _name(process: Process) -> Name:
    return {"pid": process.pid, "start": process.start}
