"""The processes of a run: its agent's records, checked against the process table.

    agent.json       the agent and its keeper: {"boot", "agent": {"pid", "start"}, "keeper": {…}}
    processes.json   its tasks: {"boot", "leaders": [{"pid", "start"}], "others": […]}
    containers.json  containers of its tasks, which are no children of the agent: {"program", "names": […]}

A pid alone identifies no process, since the kernel reuses pids. A pid and a start time identify one process until the
machine reboots, so the files record the boot, too. ``others`` are the leaders' descendants, in any session; the agent
records them every few seconds. A descendant that is not on record yet is identified by its environment: by the run and
the folder of one of this host's tasks. A run may have two hosts on one machine, but no task has two hosts. In a
container, the container's name in its environment identifies it. A container's name stays on record from before the
container starts until the container is proven gone.
"""

import os
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Dict, Iterable, List, Optional, Sequence, TypeVar

from cluster.protocol.typed_json import to_values
from launch.agent.linux.processes import Process, ProcessTable, descendants, inspect, is_same, table
from launch.agent.state import plan_file
from launch.agent.state.run_folder import RunFolder

AGENT, TASKS, CONTAINERS = "agent.json", "processes.json", "containers.json"
CONTAINER = "LAUNCH_CONTAINER"  # in the environment of every process in a container, and of no other process
NOTE_S = 2.0


@dataclass(frozen=True)
class ProcessName:
    """A process, unique until the machine boots: its pid, and its start in the kernel's ticks since the boot."""

    pid: int
    start: int


@dataclass(frozen=True)
class AgentProcesses:
    """The content of agent.json: the processes of a run's agent and of its keeper."""

    boot: str
    agent: ProcessName
    keeper: ProcessName


@dataclass(frozen=True)
class TaskProcesses:
    """The content of processes.json: the processes of a run's tasks on this host."""

    boot: str
    leaders: List[ProcessName]
    others: List[ProcessName]


@dataclass(frozen=True)
class RecordedContainers:
    """The content of containers.json: the containers of a run's tasks, and the program that runs them."""

    program: str
    names: List[str]


OfBoot = TypeVar("OfBoot", AgentProcesses, TaskProcesses)


def boot() -> str:
    """Return the kernel's identifier of this machine's current boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def write_agent(folder: RunFolder, agent: Process, keeper: Process) -> None:
    """Record the agent and the keeper of the run on this host."""
    folder.write(AGENT, to_values(AgentProcesses(boot(), _name(agent), _name(keeper))))


class ProcessRecord:
    """The record of the tasks' processes; only the agent writes the record.

    Args:
      agent: pid of the process whose children the tasks are.
    """

    def __init__(self, folder: RunFolder, agent: int):
        self._folder, self._agent = folder, agent
        self._leaders: List[ProcessName] = []
        self._written: Optional[TaskProcesses] = None

    def began(self, leader: int) -> None:
        """Record ``leader``, the pid of a new task's first process, before the agent reports the start of the task."""
        process = inspect(leader)
        self._leaders += [_name(process)] if process else []
        self.note(table())

    def note(self, processes: Iterable[Process], apart: Iterable[Process] = ()) -> None:
        """Record the processes of the tasks; call this method every ``NOTE_S`` seconds.

        Args:
          processes: a process table; the agent's descendants in it are processes of the tasks.
          apart: processes of the tasks that do not descend from the agent: a container's runtime has started them.
        """
        found = {*descendants(processes, self._agent), *apart}
        others = [name for name in map(_name, sorted(found)) if name not in self._leaders]
        record = TaskProcesses(boot(), [*self._leaders], others)
        if record != self._written and self._folder.note(TASKS, to_values(record)):
            self._written = record


def is_of_this_boot(folder: RunFolder) -> bool:
    """Return whether the agent of ``folder`` has run on this machine since the machine's last boot."""
    return _of_this_boot(folder.read_record(AGENT, AgentProcesses)) is not None


def agent_of(folder: RunFolder) -> List[Process]:
    """Return the living processes of the run's agent and of its keeper on this host."""
    record = _of_this_boot(folder.read_record(AGENT, AgentProcesses))
    return _living([record.agent, record.keeper]) if record else []


def keeper_and_agent(folder: RunFolder) -> List[Process]:
    """Return the living keeper and agent, in the order in which to end them: a keeper may restart an agent."""
    return agent_of(folder)[::-1]


def tasks_of(folder: RunFolder, processes: Optional[ProcessTable] = None) -> List[Process]:
    """Return the living processes of the run's tasks on this host, with all that descend from them.

    ``processes`` is the host's process table; None where the caller has not read the table.
    """
    record = _of_this_boot(folder.read_record(TASKS, TaskProcesses))
    if record is None:
        return []
    named = _living([*record.leaders, *record.others])
    known, everything = {process.pid for process in named}, processes or table()
    marked = [*_marked(folder, record.leaders, everything), *contained(folder, everything)]
    further = {*marked, *descendants(everything, *known, *(process.pid for process in marked))}
    return named + sorted(each for each in further if each.pid not in known)


def container_names(folder: RunFolder) -> List[str]:
    """Return the names of the run's containers on this host that are not proven gone."""
    record = folder.read_record(CONTAINERS, RecordedContainers)
    return [] if record is None else record.names


def contained(folder: RunFolder, processes: ProcessTable) -> List[Process]:
    """Return the living processes in recorded containers, by the container's name in their environment."""
    names = set(container_names(folder))
    living = [process for process in processes if names and process.state != "Z"]
    return [process for process in living if processes.environment(process.pid).get(CONTAINER) in names]


def _marked(folder: RunFolder, leaders: Sequence[ProcessName], processes: ProcessTable) -> List[Process]:
    """Return the living processes with the run in their environment that are of a task of this host.

    Such a process has the task's folder in its environment, too, or belongs to a recorded leader's session. The session
    identifies it even if the plan, which names the tasks, is damaged.
    """
    began: Dict[int, float] = {leader.pid: leader.start for leader in leaders}
    first, read = min(began.values(), default=inf), processes.environment
    of_run = [each for each in processes if each.start >= first and read(each.pid).get("LAUNCH_RUN") == folder.run]
    homes = [os.path.realpath(str(folder.task(name))) for name in plan_file.read(folder).names] if of_run else []
    of_tasks = [
        each for each in of_run
        if each.start >= began.get(each.session, began.get(each.group, inf))  # a later session may have that number
        or os.path.realpath(read(each.pid).get("LAUNCH_TASK_DIR", "/")) in homes
    ]  # fmt: skip
    return [each for each in of_tasks if is_same(each.pid, each.start)]  # a later process may have that pid


def _of_this_boot(record: Optional[OfBoot]) -> Optional[OfBoot]:
    """Return a record; None for a record from before the machine booted, which identifies no process."""
    return record if record and record.boot == boot() else None


def _living(names: Iterable[ProcessName]) -> List[Process]:
    seen = [(name.start, inspect(name.pid)) for name in names]
    return [process for start, process in seen if process and process.start == start and process.state != "Z"]


def _name(process: Process) -> ProcessName:
    return ProcessName(process.pid, process.start)
