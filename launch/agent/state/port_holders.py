"""The holders of ports that a run needs: another run of this user, with the command that ends it, or any process."""

from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence

from launch.agent.linux import sockets
from launch.agent.linux.processes import environment
from launch.agent.state import plan_file
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import TaskRequest

OTHER_PORT = "set another `port` in the hosts file"


class OtherRun(NamedTuple):
    """A run that holds ports; ``file`` is what a user types after a verb to name it: ``launch down FILE``."""

    name: str
    file: str


def refusals(tasks: Sequence[TaskRequest], beside: Optional[str]) -> List[str]:
    """Return an error text for each run, or other process, that holds ports of these tasks.

    Args:
      beside: the command that starts the run on other ports while another run holds these ports; None if the run has
        other machines, too.
    """
    by_run: Dict[OtherRun, List[TaskRequest]] = {}
    others = []
    for task in tasks:
        if sockets.can_listen(task.port):
            continue
        run = _run_of(sockets.holder(task.port))
        if run is not None:
            by_run.setdefault(run, []).append(task)
            continue
        who = sockets.describe_holder(task.port)
        way = f"train beside it with `{beside}`, which takes free ports" if beside else OTHER_PORT
        others.append(f"port {task.port} of {task.name} is taken by {who}; end it, or {way}")
    return [*(_refusal(run, taken, beside) for run, taken in by_run.items()), *others]


def _run_of(pid: Optional[int]) -> Optional[OtherRun]:
    """Return the run that a process belongs to, by its environment; None for any other process."""
    variables = {} if pid is None else environment(pid)
    run, folder = variables.get("LAUNCH_RUN"), variables.get("LAUNCH_TASK_DIR")
    if run is None or folder is None:
        return None
    return OtherRun(run, _file_of(Path(folder).parent) or "FILE")


def _file_of(folder: Path) -> Optional[str]:
    """Return the argument of verbs about the run in a folder; None where its plan cannot be read."""
    for host in sorted(folder.glob("hosts/*")):
        try:
            return plan_file.read(RunFolder(folder.parents[1], folder.name, host.name)).file
        except (OSError, ValueError):
            continue
    return None


def _refusal(run: OtherRun, tasks: Sequence[TaskRequest], beside: Optional[str]) -> str:
    ports = ", ".join(f"{task.port} of {task.name}" for task in tasks)
    noun, verb = ("port", "is") if len(tasks) == 1 else ("ports", "are")
    ways = [f"end it with `launch down {run.file}`", *([f"train beside it with `{beside}`"] if beside else [])]
    return f"{noun} {ports} {verb} taken by the run {run.name}; {', or '.join(ways)}"
