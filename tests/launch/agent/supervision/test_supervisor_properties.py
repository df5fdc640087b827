"""Whatever happens in whatever order, orders make sense and the run comes to its end."""

from typing import Dict, List, Optional, Set, Tuple

from hypothesis import given, settings
from hypothesis import strategies as st

from launch.agent.protocol.messages import (
    End,
    Event,
    Go,
    Joined,
    KillRequested,
    Lost,
    Order,
    Start,
    Stop,
    StopRequested,
    Tick,
)
from launch.agent.supervision.run_state import Phase
from tests.support.agent.histories import Replay, advanced, failed, left, started, succeeded

_QUICK = settings(max_examples=150, deadline=None, derandomize=True, database=None)
_TASKS = ("ps:0@a", "ps:1@b", "chief:0@a", "worker:0@b", "worker:1@c")
_ANY = (
    "join a", "join b", "join c", "go", "stop", "kill", "lose b", "lose c", "tick", "start", "advance", "fail",
    "give up", "succeed", "leave",
)  # fmt: skip
_HISTORIES = st.lists(st.tuples(st.sampled_from(_ANY), st.integers(0, 4), st.floats(0, 4)), max_size=40)


class World:
    """The agents of a run, as honest as real ones: they carry out orders, and tell of what is there."""

    def __init__(self, judge: str, together: bool):
        self.replay, self.together = Replay(*_TASKS, judge=judge, restart_together=together), together
        self.processes: Set[str] = set()
        self.orders: List[Order] = []
        self.now = 0.0
        self.ended = False

    def happen(self, event: Event) -> None:
        former = {task for task in self.processes if not task.startswith("ps")}
        orders = self.replay.at(self.now, event)
        assert not (orders and self.ended), f"orders after the end: {orders}"
        self.orders += orders
        for order in orders:
            is_worker = isinstance(order, Start) and not order.task.startswith("ps")
            assert not (is_worker and self.together and former), f"{order} beside {former}"
            self._carry_out(order)

    def _carry_out(self, order: Order) -> None:
        if isinstance(order, Start):
            assert order.task not in self.processes, f"{order.task} was to be started while it had a process"
            self.processes.add(order.task)
        if isinstance(order, Stop) and order.grace_s > 0:
            is_closing = self.replay.run.state.phase is Phase.CLOSING
            assert is_closing or self.together
            workers = {task for task in self.processes if not task.startswith("ps")}
            assert not (order.task.startswith("ps") and workers and is_closing), (
                f"{order.task} was stopped before {workers}"
            )
        if isinstance(order, End):
            self.ended = True

    def attempt(self, task: str) -> int:
        return self.replay.run.tasks[task].attempt

    def event(self, kind: str, index: int) -> Optional[Event]:
        """What ``kind`` is now, or None where it cannot happen."""
        verb, _, host = kind.partition(" ")
        simple: Dict[str, Event] = {
            "go": Go(),
            "stop": StopRequested("enough"),
            "kill": KillRequested("now"),
            "tick": Tick(),
        }
        if kind in simple:
            return simple[kind]
        if verb == "join":
            return Joined(host)
        if verb == "lose":
            self.processes -= {task.split("@")[0] for task in _TASKS if task.endswith(host)}
            return Lost(host, 15.0)
        return self._of_a_process(kind, _TASKS[index].split("@")[0])

    def _of_a_process(self, kind: str, task: str) -> Optional[Event]:
        if task not in self.processes:
            return None
        attempt = self.attempt(task)
        if kind == "start":
            return started(task, attempt)
        if kind == "advance":
            return advanced(task, 1, attempt)
        self.processes.discard(task)
        if kind == "fail":
            return failed(task, attempt)
        if kind == "give up":
            return failed(task, attempt, retry=False)
        return succeeded(task, attempt) if kind == "succeed" else left(task, attempt)


@_QUICK
@given(history=_HISTORIES, judge=st.sampled_from(["outcome", "exit"]), together=st.booleans())
def test_no_history_starts_a_task_twice_stops_a_ps_before_the_workers_or_keeps_a_run_from_ending(
    history: List[Tuple[str, int, float]], judge: str, together: bool
) -> None:
    world = World(judge, together)
    begun = [("join a", 0, 0.0), ("join b", 0, 0.0), ("join c", 0, 0.0), ("go", 0, 0.0)]
    history = [*begun, *history] if together else history  # else few histories have workers that could meet
    for kind, index, seconds in history:
        world.now += seconds
        event = world.event(kind, index)
        if event is not None:
            world.happen(event)
    _finish(world)
    assert world.ended and world.replay.run.state.phase is Phase.ENDED
    assert sum(isinstance(order, End) for order in world.orders) == 1
    assert world.replay.run.state.label in ("succeeded", "failed", "stopped")
    assert not {"starting", "running", "restarting"} & set(world.replay.states().values())


def _finish(world: World) -> None:
    """Somebody stops the run, and every task that is told to leaves."""
    world.happen(StopRequested("enough"))
    for _ in range(len(_TASKS) + 1):
        for task in sorted(world.processes, reverse=True):  # workers before ps
            world.processes.discard(task)
            world.happen(left(task, world.attempt(task), code=-15))
        world.now += 20.0
        world.happen(Tick())
