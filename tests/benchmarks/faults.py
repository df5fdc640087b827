"""What faults cost the lead of a large run: make bench-faults

Ten thousand tasks on as many hosts train for a minute that is made up: nothing is started. One in a hundred has
a fault, at a moment that the seed decides: it is killed, it freezes, or its agent dies. Every event is handed to
the supervisor as the lead does it, and its processor time is taken. What the run remembers is measured for a tenth of
the tasks, too: ten times the tasks may take ten times the memory.
"""

import gc
import random
import sys
import time
import tracemalloc
from typing import Any, Callable, Dict, List, Tuple

from launch.agent.protocol.messages import (
    Advanced,
    Event,
    Exited,
    Go,
    Joined,
    Signs,
    Start,
    Started,
    Stop,
    Tick,
)
from launch.agent.supervision.supervisor import Supervisor
from launch.agent.wire.run_request import RunPlan, TaskPlan

TASKS = 10_000
TASKS_PER_PS = 100
FAULTS = 0.01  # of the tasks
SECONDS = 60  # that the run trains; every task tells of its progress once in each
STOPPED = {
    "state": "T",
    "stopped_s": 12.0,
    "silent_s": 12.0,
    "phase": "step",
    "phase_s": 12.0,
    "slowest_s": 0.1,
    "owes": False,
}


def plan(tasks: int) -> RunPlan:
    """A job's run, each task on a host of its own."""
    servers = max(1, tasks // TASKS_PER_PS)
    roles = [("worker", index) for index in range(tasks - servers)] + [("ps", index) for index in range(servers)]
    planned = [
        TaskPlan(
            f"{role}:{index}",
            role,
            index,
            f"{role}{index:05}",
            f"{role}{index:05}:2222",
            chief=(role, index) == ("worker", 0),
            spare=False,
        )
        for role, index in roles
    ]
    return RunPlan("r-1", "r", [task.host for task in planned], planned, steps=1_000_000)


class Simulation:
    """One run whose tasks have faults. Orders are obeyed at once, as by agents that take no time.

    ``costs`` is by kind of event what each took on ``clock``; in the benchmark, seconds.
    """

    def __init__(self, tasks: int, seed: int = 0, clock: Callable[[], float] = time.process_time):
        self.run = Supervisor(plan(tasks))
        self.names = list(self.run.tasks)
        self.costs: Dict[str, List[float]] = {}
        self._restarts = 0
        self._clock = clock
        self._random = random.Random(seed)

    def tell(self, event: Event, now: float) -> None:
        """One event, and what follows from the orders that it brings."""
        began = self._clock()
        orders = self.run.handle(event, now)
        self.costs.setdefault(type(event).__name__, []).append(self._clock() - began)
        for order in orders:
            if isinstance(order, Start):
                self._restarts += order.attempt > 0
                self.tell(Started(order.task, order.attempt, 42, [], f"/w/{order.task}.log"), now)
            elif isinstance(order, Stop):
                self.tell(
                    Exited(order.task, order.attempt, -9, "killed by SIGKILL", kind="signal", lines=["step 7"]), now
                )

    def begin(self) -> None:
        """Every host joins, and all tasks start: one event with an order for each."""
        for task in self.run.plan.tasks:
            self.run.handle(Joined(task.host, "0"), 0.0)
        for order in self.run.handle(Go(), 0.0):
            if isinstance(order, Start):
                self.run.handle(Started(order.task, order.attempt, 42, [], f"/w/{order.task}.log"), 0.0)

    def train(self) -> None:
        """Every task tells of its progress each second; between, faults happen."""
        faults = self._faults()
        for second in range(SECONDS):
            for place, name in enumerate(self.names):
                now = 1.0 + second + place / len(self.names)
                task = self.run.tasks[name]
                if task.process:
                    progress = {"step": 10 * second, "examples": 640 * second, "step_time_ms": 100.0, "waited_s": 0.1}
                    self.tell(Advanced(name, task.attempt, progress), now)
                for event in faults.pop((second, place), []):
                    self.tell(event, now)
            self.tell(Tick(), 2.0 + second)

    def _faults(self) -> Dict[Tuple[int, int], List[Event]]:
        """The events of faults by their moment; none in the last seconds, so that all are over at the end."""
        moments: Dict[Tuple[int, int], List[Event]] = {}
        for name in self._random.sample(self.names, round(FAULTS * len(self.names))):
            moment = self._random.randrange(5, SECONDS - 10), self._random.randrange(len(self.names))
            moments.setdefault(moment, []).append(self._fault(name))
        return moments

    def _fault(self, name: str) -> Event:
        kind = self._random.choice(("killed", "frozen", "agent"))
        if kind == "killed":
            return Exited(name, 0, -9, "killed by SIGKILL", kind="signal", lines=["step 7"] * 10)
        if kind == "frozen":
            return Signs({name: {"attempt": 0, **STOPPED}})
        return Joined(self.run.tasks[name].plan.host, "1")

    def check(self) -> None:
        """That every fault was noticed and answered.

        Raises:
          RuntimeError: it was not.
        """
        wanted, known = round(FAULTS * len(self.names)), self.run.incidents.statuses()
        if not known or known[-1].number != wanted or any(incident.open for incident in known):
            raise RuntimeError(f"{wanted} faults, of which this is known: {known}")
        if self._restarts != wanted or not all(task.process for task in self.run.tasks.values()):
            raise RuntimeError(f"{wanted} faults, {self._restarts} restarts")


def simulated(tasks: int, **options: Any) -> Simulation:
    """A whole run of so many tasks, checked."""
    simulation = Simulation(tasks, **options)
    simulation.begin()
    simulation.train()
    simulation.check()
    return simulation


def held_bytes(tasks: int) -> int:
    """What a run with its faults holds at its end; it is slow, since every allocation is followed."""
    gc.collect()
    tracemalloc.start()
    try:
        simulation = simulated(tasks)
        simulation.costs.clear()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def main() -> None:
    """Prints the table."""
    print(f"{TASKS:,} tasks, {round(FAULTS * TASKS)} faults in {SECONDS} s, Python {sys.version.split()[0]}\n")
    print(f"{'event':12} {'number':>9} {'median':>10} {'99.9 %':>10} {'worst':>10}")
    for kind, seconds in sorted(simulated(TASKS).costs.items()):
        ordered = sorted(seconds)
        shown = [ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.999, 1.0)]
        print(f"{kind:12} {len(ordered):9,} " + " ".join(f"{1000 * each:7.3f} ms" for each in shown))
    few, many = held_bytes(TASKS // 10), held_bytes(TASKS)
    print(f"\nheld at the end: {many / 1e6:.1f} MB, {many / few:.2f} times that of {TASKS // 10:,} tasks")


if __name__ == "__main__":
    main()
