"""Whatever becomes of a run's hosts, phases follow as they may, and formations never meet."""

from typing import Dict, List, Optional, Set, Tuple

from hypothesis import given, settings
from hypothesis import strategies as st

from launch.agent.protocol.messages import (
    Advanced,
    Dismiss,
    DrainRequested,
    End,
    Event,
    Go,
    Joined,
    KillRequested,
    Lost,
    Order,
    Prepare,
    Prepared,
    RestartRequested,
    Save,
    Start,
    Stop,
    StopRequested,
    Tick,
)
from launch.agent.supervision.elastic import END_S
from launch.agent.supervision.run_state import Phase
from tests.support.agent.histories import Replay, advanced, failed, left, started, succeeded

_QUICK = settings(max_examples=300, deadline=None, derandomize=True, database=None)
TASKS = ("ps:0@a", "ps:1@b", "chief:0@a", "worker:0@b", "worker:1@c", "worker:2@d", "ps:2@c+", "evaluator:0@e")
HOSTS = {name.rstrip("+").split("@")[0]: name.rstrip("+").split("@")[1] for name in TASKS}
NAMES = list(HOSTS)
# Of the lead's own host, a, neither agent nor link is lost: the run is elsewhere then.
ANY = (
    *(f"{verb} {host}" for verb in ("lose", "join", "replace") for host in "bcde"),
    "all up", "all up", "all leave", "all leave", "rest", "rest",
    "go", "tick", "start", "advance", "fail", "quit", "succeed", "leave", "restart", "save", "stop", "kill",
    "drain", "drain", "back", "prepared",
)  # fmt: skip
HISTORIES = st.lists(st.tuples(st.sampled_from(ANY), st.integers(0, len(TASKS) - 1), st.floats(0, 4)), max_size=60)


class World:
    """The agents of a run, elastic or not, which carry out orders, and report what is there.

    ``processes`` has for each task with a process the number of the formation that the process is of.
    """

    def __init__(self, min_workers: Optional[int] = 2) -> None:
        self.replay = Replay(*TASKS, min_workers=min_workers, restart_max=1)
        self.processes: Dict[str, int] = {}
        self.away: Set[str] = set("bcde")
        self.stopping: Set[str] = set()
        self.lives = dict.fromkeys("abcde", 0)
        self.saves = 0
        self.waiting: Dict[str, int] = {}  # processes that were prepared, and the attempts for which they wait
        self.ended: Optional[str] = None
        self.phases: Set[Phase] = set()
        self.now = 0.0
        self.happen(Joined("a", "0"))

    @property
    def phase(self) -> Phase:
        return self.replay.run.state.phase

    def happen(self, event: Event) -> None:
        orders = self.replay.at(self.now, event)
        assert not (orders and self.ended), f"orders after the end: {orders}"
        for order in orders:
            self._carry_out(order)
        state = self.replay.run.state
        self.phases.add(state.phase)
        assert (state.result is not None) == (state.phase in (Phase.CLOSING, Phase.ENDED))
        assert (self.ended is not None) == (state.phase is Phase.ENDED)

    def _carry_out(self, order: Order) -> None:
        if isinstance(order, Start):
            self._start(order)
        elif isinstance(order, Stop):
            self.stopping.add(order.task)
            assert order.grace_s != END_S or self.phase in (Phase.REFORMING, Phase.TRAINING, Phase.CLOSING)
        elif isinstance(order, Prepare):
            assert HOSTS[order.task] not in self.away, f"{order.task} was to be prepared on a host that is away"
            self.waiting[order.task] = order.attempt
        elif isinstance(order, Dismiss):
            self.waiting.pop(order.task, None)
        elif isinstance(order, Save):
            self.saves = order.number
        elif isinstance(order, End):
            assert not self.processes, f"the run has ended beside {self.processes}"
            self.ended = order.state

    def _start(self, order: Start) -> None:
        task = order.task
        assert task not in self.processes, f"{task} was to be started while it had a process"
        assert HOSTS[task] not in self.away, f"{task} was to be started on a host that is away"
        formation: int = (self.replay.status()["formation"] or {"number": 0})["number"]
        assert set(self.processes.values()) <= {formation}, f"{task} meets a task of another formation"
        self.processes[task] = formation
        self.stopping.discard(task)

    def forget(self, host: str) -> None:
        """The processes of a host are gone, and nobody reports that."""
        for task in [task for task in self.processes if HOSTS[task] == host]:
            del self.processes[task]

    def attempt(self, task: str) -> int:
        return self.replay.run.tasks[task].attempt

    def progress(self, task: str) -> Advanced:
        is_chief = task == "chief:0"
        saved = {"save_begun": self.saves, "save_done": self.saves, "checkpoint_step": 1} if is_chief else {}
        return advanced(task, 1, self.attempt(task), **saved)

    # -- one thing that happens

    def act(self, kind: str, index: int) -> None:
        """Let ``kind`` happen, where it can."""
        verb, _, host = kind.partition(" ")
        simple: Dict[str, Event] = {
            "go": Go(),
            "stop": StopRequested("enough"),
            "kill": KillRequested("now"),
            "tick": Tick(),
            "restart": RestartRequested([NAMES[index]]),
        }
        if kind in simple:
            self.happen(simple[kind])
        elif kind in ("drain", "back"):
            self.happen(DrainRequested([NAMES[index]], kind == "back"))
        elif kind == "prepared":
            for task, attempt in self.waiting.items():
                self.happen(Prepared(task, attempt))
        elif kind.startswith("all "):
            self._act_on_all(kind)
        elif kind == "rest":
            self.now += 60.0
            self.happen(Tick())
        elif host:
            self._act_on_host(verb, host)
        elif NAMES[index] in self.processes:
            self.happen(self._of_a_process(kind, NAMES[index]))

    def _act_on_host(self, verb: str, host: str) -> None:
        if verb == "lose":
            self.forget(host)
            self.away.add(host)
            self.happen(Lost(host, 15.0))
            return
        if verb == "replace" and self.phase is not Phase.GATHERING:
            self.lives[host] += 1
            self.forget(host)
        self.away.discard(host)
        self.happen(Joined(host, str(self.lives[host])))

    def _act_on_all(self, kind: str) -> None:
        """Every host has joined and every process is up; or every process that was to end has ended."""
        if kind == "all up":
            for host in "bcde" if self.phase is Phase.GATHERING else "":
                self._act_on_host("join", host)
            self.happen(Go())
            for task in sorted(set(self.processes) - self.stopping):
                self.happen(started(task, self.attempt(task)))
                self.happen(self.progress(task))
            return
        for task in sorted(self.stopping & set(self.processes), reverse=True):
            if task in self.processes:
                del self.processes[task]
                self.happen(left(task, self.attempt(task), code=-15))

    def _of_a_process(self, kind: str, task: str) -> Event:
        attempt = self.attempt(task)
        if kind == "start":
            return started(task, attempt)
        if kind in ("advance", "save"):
            return self.progress(task)
        del self.processes[task]
        endings = {
            "fail": failed(task, attempt),
            "quit": failed(task, attempt, retry=False),
            "succeed": succeeded(task, attempt),
        }
        return endings.get(kind, left(task, attempt))

    def finish(self) -> None:
        """Somebody stops the run, and every task that is ordered to end ends."""
        self.happen(StopRequested("enough"))
        for _ in range(len(TASKS) + 1):
            self.now += 25.0
            self.happen(Tick())
            self._act_on_all("all leave")


@_QUICK
@given(history=HISTORIES, min_workers=st.sampled_from([2, 3, None]))
def test_no_history_makes_an_illegal_turn_lets_formations_meet_or_ends_a_run_that_has_a_process(
    history: List[Tuple[str, int, float]], min_workers: Optional[int]
) -> None:
    world = World(min_workers)
    for kind, index, seconds in history:
        world.now += seconds
        world.act(kind, index)
    world.finish()
    assert world.ended == world.replay.run.state.label and world.phase is Phase.ENDED
    assert not {"starting", "running", "restarting"} & set(world.replay.states().values())


def test_this_world_drains_a_server_and_takes_it_back() -> None:
    world = World()
    world.act("all up", 0)
    for number, kind in enumerate(("drain", "back"), 1):
        world.act("save", NAMES.index("chief:0"))
        world.act(kind, NAMES.index("ps:1"))
        for then in ("prepared", "save", "all leave", "all up"):
            world.act(then, NAMES.index("chief:0"))
        assert world.replay.status()["formation"]["number"] == number
        assert ("ps:1" in world.processes) is (kind == "back")
    world.finish()


def test_this_world_reaches_every_phase_and_takes_a_host_back() -> None:
    world = World()
    for kind in ("all up", "lose d", "all leave", "all up", "tick", "join d", "rest", "save"):
        world.act(kind, NAMES.index("chief:0"))
    for kind in ("all leave", "all up", "tick"):
        world.act(kind, 0)
    assert world.phase is Phase.TRAINING and "worker:2" in world.processes
    assert world.replay.status()["formation"]["number"] == 2
    world.finish()
    assert world.phases == set(Phase)
