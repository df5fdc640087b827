"""The containers of a run's tasks on this host, where they are no children of its agent.

containers.json has the runtime's program and the name of each container, before it starts. The name is removed once
the container is proven gone. Only containers that the file names are touched.
"""

from typing import Dict, List, Sequence

from launch.agent.containers import control
from launch.agent.containers.command import MARK, RunContainers
from launch.agent.linux.processes import Process, environment, table
from launch.agent.state.log import say
from launch.agent.state.run_folder import RunFolder

RECORD = "containers.json"


class ContainerRecord:
    """The record of an agent's containers, which only the agent writes."""

    def __init__(self, folder: RunFolder, container: RunContainers):
        self._folder, self._program = folder, container.program
        self.names: List[str] = recorded(folder)  # an agent before may have left some

    def begins(self, name: str) -> None:
        """Record a container, before there is one. Raises OSError."""
        self.names.append(name)
        self._folder.write(RECORD, self._values())

    def gone(self, name: str) -> None:
        """Forget a container that is proven gone."""
        self.names.remove(name)
        self._folder.note(RECORD, self._values())

    def _values(self) -> Dict[str, object]:
        return {"program": self._program, "names": self.names}


def recorded(folder: RunFolder) -> List[str]:
    """Return the names of the containers that are not proven gone."""
    record = folder.read_whole(RECORD)
    return [] if record is None else list(record["names"])


def processes_in(folder: RunFolder, table: Sequence[Process]) -> List[Process]:
    """Return the living processes in recorded containers, which have its name in their environment."""
    names = set(recorded(folder))
    living = [process for process in table if names and process.state != "Z"]
    return [process for process in living if environment(process.pid).get(MARK) in names]


def left(folder: RunFolder) -> List[str]:
    """Return the containers of a run that exist.

    Where the runtime does not answer, these are all that are recorded, with the reason.
    """
    names = recorded(folder)
    if not names:
        return []
    try:
        return control.existing(_program(folder), names)
    except control.NoAnswer as error:
        return [f"{name} ({error})" for name in names]


def remove(folder: RunFolder) -> None:
    """End and remove the containers of a run, which stay recorded until ``forget`` finds them gone.

    Where a container has no control group, its runtime may leave processes of it; ``processes_in`` finds them.
    """
    names = recorded(folder)
    try:
        if names:
            control.remove(_program(folder), names)
    except control.NoAnswer as error:
        say(f"containers cannot be removed: {error}")


def forget(folder: RunFolder) -> None:
    """Remove the containers that are proven gone from the record."""
    names = recorded(folder)
    if not names:
        return
    try:
        staying = control.existing(_program(folder), names)
    except control.NoAnswer:
        return
    living = {environment(process.pid).get(MARK) for process in processes_in(folder, table())}
    folder.note(RECORD, {"program": _program(folder), "names": [each for each in names if each in {*staying, *living}]})


def _program(folder: RunFolder) -> str:
    return str((folder.read_whole(RECORD) or {})["program"])
