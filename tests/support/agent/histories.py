"""Histories of a run, replayed into a supervisor: times are plain numbers, no clock is asked."""

from typing import Any, Dict, List, Optional, Sequence

from cluster.protocol.typed_json import from_values, to_values
from launch.agent.protocol.messages import Advanced, Event, Exited, Go, Joined, Order, Started, Tick
from launch.agent.supervision.supervisor import Supervisor
from launch.agent.wire.run_request import RunPlan, TaskPlan
from launch.status.incident_status import IncidentStatus, sentence

DONE = {"succeeded": True, "step": 100, "checkpoint": "/c/model-100", "checkpoint_step": 100, "metrics": {"loss": 0.5}}


def run_plan(tasks: Sequence[str] = ("ps:0@a", "worker:0@a", "worker:1@b"), **options: Any) -> RunPlan:
    """A plan of tasks written ``worker:1@host``, a spare ``ps:2@host+``; the chief, or else worker:0, is the chief."""
    names = [task.split("@")[0] for task in tasks]
    chief = "chief:0" if "chief:0" in names else "worker:0"
    planned = [_task(task, chief) for task in tasks]
    settings: Dict[str, Any] = {"steps": 100, "backoff_s": 1.0, "restart_max": 2, **options}
    return RunPlan("r-1", "r", list(dict.fromkeys(task.host for task in planned)), planned, **settings)


def _task(text: str, chief: str) -> TaskPlan:
    name, host = text.rstrip("+").split("@")
    role, index = name.split(":")
    return TaskPlan(name, role, int(index), host, f"{host}:2222", name == chief, spare=text.endswith("+"))


class Replay:
    """One run. ``at`` hands over events at a time and returns the orders that follow."""

    def __init__(self, *tasks: str, **options: Any):
        plan = run_plan(tasks, **options) if tasks else run_plan(**options)
        self.run = Supervisor(plan)

    def at(self, now: float, *events: Event) -> List[Order]:
        """Events of one moment; without any, only time has passed."""
        return [order for event in events or [Tick()] for order in self.run.handle(event, now)]

    def begin(self) -> List[Order]:
        """Every host joins and the launcher says go, at 0."""
        return self.at(0.0, *(Joined(host) for host in self.run.plan.hosts), Go())

    def up(self) -> None:
        """Begins, and every task runs, at 0."""
        for order in self.begin():
            self.at(0.0, started(order.task), advanced(order.task))  # type: ignore[union-attr]

    def status(self) -> Dict[str, Any]:
        """The run's status as JSON values."""
        return to_values(self.run.status())

    def states(self) -> Dict[str, str]:
        """{task: state}"""
        return {name: task.state for name, task in self.run.tasks.items()}


def with_evaluator() -> Replay:
    replay = Replay("ps:0@a", "worker:0@a", "evaluator:0@a")
    replay.up()
    return replay


def in_words(incident: Dict[str, Any]) -> str:
    """The sentence of an incident, from its JSON values."""
    return sentence(from_values(IncidentStatus, incident))


def started(task: str, attempt: int = 0, pid: int = 7) -> Started:
    """A task's process runs."""
    return Started(task, attempt, pid, [0], f"/log/{task}")


def advanced(task: str, step: int = 0, attempt: int = 0, examples: int = 0, **progress: Any) -> Advanced:
    """A task is at ``step``."""
    return Advanced(task, attempt, {"step": step, "examples": examples, **progress})


def failed(task: str, attempt: int = 0, retry: bool = True, code: Optional[int] = 1) -> Exited:
    """A task ended by itself, and told why."""
    outcome = {"succeeded": False, "cause": "it broke", "retry": retry}
    return Exited(task, attempt, code, "it broke", outcome)


def succeeded(task: str, attempt: int = 0, code: int = 0, **outcome: Any) -> Exited:
    """A task said that it succeeded, and left."""
    return Exited(task, attempt, code, None, {**DONE, **outcome})


def left(task: str, attempt: int = 0, code: int = 0) -> Exited:
    """A program that tells no outcome left."""
    return Exited(task, attempt, code, None if code == 0 else f"exit code {code}")


# -- runs that fail

GONE = "AbortedError: Graph handle is not found: /job:ps/replica:0/task:0"


def ended(task: str, kind: str, cause: str, attempt: int = 0, code: Optional[int] = 1) -> Exited:
    """A task ended of this kind."""
    return Exited(task, attempt, code, cause, {"succeeded": False, "cause": cause}, kind, ["line 1", "line 2"])


def killed(task: str, attempt: int = 0) -> Exited:
    """A task was killed from outside."""
    return Exited(task, attempt, -9, "killed by SIGKILL; its last line: step 4", None, "signal", ["step 4"])


def cut(task: str, attempt: int = 0, cause: str = GONE) -> Exited:
    """A task lost its connection."""
    return ended(task, "lost-connection", cause, attempt)


def step(replay: Replay, now: float, to: int, *tasks: str, attempt: int = 0, **progress: Any) -> None:
    """Workers tell that they have taken a step."""
    for task in tasks or ("worker:0", "worker:1"):
        replay.at(now, advanced(task, to, attempt, examples=to + 1, **progress))


def incidents(replay: Replay) -> List[Dict[str, Any]]:
    """As ``status --json`` has them."""
    told: List[Dict[str, Any]] = replay.status()["incidents"]
    return told


def training(**options: Any) -> Replay:
    """A run that takes a step a second, and is at step 10 after 10 s."""
    replay = Replay(**options)
    replay.up()
    for second in range(1, 11):
        step(replay, second, second)
    return replay


def kinds(replay: Replay) -> List[Any]:
    """Of each incident its kind, and those of what followed."""
    return [(each["kind"], [entry["kind"] for entry in each["followed"]]) for each in incidents(replay)]
