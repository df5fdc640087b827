"""The tasks of one host: real processes, and a clock that the test turns."""

from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Type, TypeVar

from cluster.protocol.settings import HostSettings
from launch.agent.limits.enforcement import Terms
from launch.agent.protocol.messages import Event, Started
from launch.agent.state import temporary
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.host_tasks import HostTasks
from launch.agent.tasks.spawning import TaskShare
from launch.agent.wire.run_request import TaskRequest
from tests.support.agent.requested import task_request
from tests.support.waiting import eventually

E = TypeVar("E")


class Bench:
    """One host's tasks in a folder of the test's own. ``now`` is the agent's clock."""

    def __init__(self, workdir: Path):
        self.folder = RunFolder(workdir, "r-20260101-000000", "h")
        self.folder.create()
        self.code = workdir / "code"
        self.code.mkdir()
        self.events: List[Event] = []
        self.now = 0.0
        self.tasks: HostTasks

    def start(self, *argv: str, name: str = "worker:0", attempt: int = 0, **options: Any) -> Optional[Started]:
        """Starts ``argv`` as a task; returns what was told of it."""
        if attempt == 0:
            self.load(*argv, name=name, **options)
        self.tasks.start(name, attempt)
        return next((event for event in self.events if isinstance(event, Started)), None)

    def load(self, *argv: str, name: str = "worker:0", **options: Any) -> None:
        """Makes the host's tasks, of which none has started."""
        keys = ("secrets", "terms", "container", "progress")
        secrets, terms, container, progress = (options.pop(key, None) for key in keys)
        settings = HostSettings(quiet_s=None, progress=progress)
        share = TaskShare({name: [2, 3]}, terms or Terms(), container, settings=settings)
        requests = [self._request(name, argv, options)]
        self.tasks = HostTasks(requests, self.folder, share, self.events.append, secrets or {})

    def _request(self, name: str, argv: Any, options: Dict[str, Any]) -> TaskRequest:
        return task_request(name, **{"argv": argv, "folder": str(self.code), **options})

    def sh(self, script: str, **options: Any) -> Optional[Started]:
        """Starts a shell script as a task."""
        return self.start("sh", "-c", script, **options)

    def comes(self, kind: Type[E], condition: Callable[[E], bool] = lambda event: True) -> E:
        """Polls until an event of this kind comes."""
        event: E = eventually(kind.__name__, lambda: self._polled(kind, condition))
        return event

    def _polled(self, kind: Type[E], condition: Callable[[E], bool]) -> Optional[E]:
        self.tasks.poll(self.now)
        return next((event for event in self.events if isinstance(event, kind) and condition(event)), None)

    def logged(self, word: str, name: str = "worker:0", attempt: int = 0) -> None:
        """Waits for a word in a task's log."""
        eventually(f"{word} in the log", lambda: word in self.folder.log(name, attempt).read_text())

    def end(self) -> None:
        """Kills what still runs."""
        tasks = getattr(self, "tasks", None)
        while tasks is not None and tasks.running:
            tasks.stop_all(0.0, self.now)
            tasks.poll(self.now + 1e6)
        for link in self.folder.path.glob("*/attempt_*.tmp"):
            temporary.remove(link)
