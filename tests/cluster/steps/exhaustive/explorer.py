"""Every state that a run can reach: breadth first, so that what is found first is the shortest history.

What a worker can do depends on the servers and on its own state alone. So that is found out once for each pair of
these, which are numbers here: there are far fewer pairs than states.
"""

import gc
import struct
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

from tests.cluster.steps.exhaustive.lives import AGAIN, FINISHED, finishing, proceed
from tests.cluster.steps.exhaustive.reached import Numbers, Reached
from tests.cluster.steps.exhaustive.servers import Event, Lost, Memory, Ps, Servers, Wrong, fresh, happen
from tests.cluster.steps.exhaustive.sessions import Call, Life, Run
from tests.cluster.steps.exhaustive.symmetry import WORKERS, Twins

YOUNG, NEVER = 100_000, 1_000_000_000


class Pending:
    """In the place of a result that is not there yet."""

    def __repr__(self) -> str:
        return "…"


PENDING = Pending()


class Task(NamedTuple):
    """A worker's process: its life, its memory, and the results of the calls that it and its ``Finisher`` are in."""

    memory: Memory
    life: Life = Life()
    results: Tuple[Any, ...] = ()
    finished: Tuple[Any, ...] = ()
    has_finished: bool = False


class State(NamedTuple):
    """A state of the run, in numbers: the servers', each worker's, and how many workers and servers may still die."""

    servers: int
    tasks: Tuple[int, ...]
    deaths: int = 0
    deaths_of_ps: int = 0


class Move(NamedTuple):
    """What a worker can do next: an operation, or notice; then the numbers of the servers and of the worker."""

    what: Any
    servers: int
    task: int


class Found(NamedTuple):
    """What an exploration has found: the number of states, and the first broken promise with the way to it."""

    states: int
    wrong: Optional[str] = None
    way: Tuple[str, ...] = ()


class Explorer:
    """Explore all states of a run with so many deaths; with ``halves`` one of each two that are twins."""

    def __init__(self, run: Run, deaths: int = 0, deaths_of_ps: int = 0, most: int = 40_000_000, halves: bool = True):
        self._run, self._most, self._deaths = run, most, deaths + deaths_of_ps
        self._servers: Numbers[Servers] = Numbers()
        self._tasks: Numbers[Task] = Numbers()
        self._moves: Dict[Tuple[int, int, int, bool], Tuple[Move, ...]] = {}
        self._begun: Dict[Tuple[int, int], int] = {}
        self._twins = Twins(run, self._servers, self._tasks) if halves and run.workers == WORKERS else None
        self._form = struct.Struct(f"{run.workers + 3}i")
        servers = self._servers.of(fresh(run.workers, run.ps * run.pushes))
        tasks = tuple(self._beginning(index, servers) for index in range(run.workers))
        self._first = State(servers, tasks, deaths, deaths_of_ps)
        self.reached = Reached(self._packed(self._first))

    def explore(self) -> Found:
        """Return what is found."""
        thresholds = gc.get_threshold()
        gc.set_threshold(YOUNG, NEVER)  # the collector looks at new objects once, and not at millions of states again
        try:
            return self._explore()
        finally:
            gc.set_threshold(*thresholds)

    def _explore(self) -> Found:
        reached = self.reached
        for number, packed in enumerate(reached.states):  # which grow meanwhile
            state = self._unpacked(packed)
            try:
                for _, after, is_death in self._next(state):
                    reached.add(number, self._packed(after), is_death)
            except Wrong:
                return Found(len(reached.states), *self._wrong(number))
            if self._is_end(state):
                reached.ends.append(number)
            if len(reached.states) > self._most:
                raise MemoryError(f"more than {self._most} states")
        stuck = reached.stuck()
        if stuck is not None:
            return Found(len(reached.states), "nobody can end training from here", self._way(stuck)[0])
        return Found(len(reached.states))

    def _is_end(self, state: State) -> bool:
        has_ended = [self._tasks[task].has_finished for task in state.tasks]
        # Who returns once a worker has ended is the launcher's matter.
        return all(has_ended) or (any(has_ended) and any(ps.born for ps in self._servers[state.servers].ps))

    def _packed(self, state: State) -> bytes:
        servers, tasks = state.servers, state.tasks
        if self._twins is not None:
            servers, tasks = min((servers, tasks), self._twins.of(servers, tasks))
        return self._form.pack(servers, *tasks, state.deaths, state.deaths_of_ps)

    def _unpacked(self, packed: bytes) -> State:
        servers, *tasks, deaths, deaths_of_ps = self._form.unpack(packed)
        return State(servers, tuple(tasks), deaths, deaths_of_ps)

    def _wrong(self, number: int) -> Tuple[str, Tuple[str, ...]]:
        """Return the promise that is broken after the state with this number, and the way there."""
        way, state = self._way(number)
        try:
            list(self._next(state))
        except Wrong as wrong:
            return str(wrong), way
        raise AssertionError(f"only one of two twins breaks a promise: {state}")

    def _way(self, number: int) -> Tuple[Tuple[str, ...], State]:
        """Return the events of a shortest way, in which no worker changes its number, and the state where it ends."""
        state, way = self._first, []
        for after in self.reached.way(number):
            what, state = next((what, found) for what, found, _ in self._next(state) if self._packed(found) == after)
            way.append(_named(what))
        return tuple(way), state

    def _next(self, state: State) -> Iterator[Tuple[Any, State, bool]]:
        has_lost = state.deaths + state.deaths_of_ps < self._deaths
        for index, task in enumerate(state.tasks):
            key = index, state.servers, task, has_lost
            if key not in self._moves:
                self._moves[key] = tuple(self._made(*key))
            for move in self._moves[key]:
                after = State(move.servers, _with(state.tasks, index, move.task), state.deaths, state.deaths_of_ps)
                yield move.what, after, False
            if state.deaths and not self._tasks[task].has_finished:
                dead = _with(state.tasks, index, self._beginning(index, state.servers))
                yield f"worker {index} dies", state._replace(tasks=dead, deaths=state.deaths - 1), True
        for index in range(self._run.ps if state.deaths_of_ps else 0):
            servers = self._without(state.servers, index)
            yield f"ps {index} dies", state._replace(servers=servers, deaths_of_ps=state.deaths_of_ps - 1), True

    def _beginning(self, index: int, servers: int) -> int:
        if (index, servers) not in self._begun:
            self._begun[index, servers] = self._tasks.of(self._begin(index, self._servers[servers]))
        return self._begun[index, servers]

    def _without(self, number: int, index: int) -> int:
        servers = self._servers[number]
        first, pushes = index * self._run.pushes, self._run.pushes
        empty = Ps(born=servers.ps[first].born + 1, turns=((),) * self._run.workers)
        servers = servers._replace(ps=(*servers.ps[:first], *(empty,) * pushes, *servers.ps[first + pushes :]))
        if index == 0:
            servers = servers._replace(step=None, era=None, counts=None, tokens=((),) * self._run.workers)
        return self._servers.of(servers)

    def _made(self, index: int, number: int, of_task: int, has_lost: bool) -> Iterator[Move]:
        """Return what a worker can do next, and the chief's ``Finisher``, also while the chief waits at the end."""
        servers, task = self._servers[number], self._tasks[of_task]
        call = None if task.has_finished else proceed(self._run, index, task.life, sum(task.memory.born))
        ops_of_finisher = finishing(self._run) if task.memory.to_finish else ()
        calls = [(None, ops_of_finisher, task.finished or (PENDING,) * len(ops_of_finisher))]
        if call is not None:
            calls.append((call, call.ops, task.results))
        is_lost = False
        for of_worker, ops, results in calls:
            for place, op in enumerate(ops):
                if results[place] is not PENDING:
                    continue
                is_lost |= op.server is not None and servers.ps[op.server].born != task.memory.born[op.server]
                if any(results[each] is PENDING for each in op.after):
                    continue
                event = Event(servers, task.memory, index, op, results, has_lost)
                found = self._happened(event, task, place, of_worker)
                if found is not None:
                    yield Move((index, op), *found)
        if is_lost:  # the session ends with all that is under way
            yield Move(f"worker {index} notices", number, self._beginning(index, number))

    def _happened(self, event: Event, task: Task, place: int, call: Optional[Call]) -> Optional[Tuple[int, int]]:
        """Return the numbers of the servers and the worker after an event of its call, or else of its ``Finisher``."""
        try:
            outcome = happen(event)
        except Lost:
            return None
        if outcome is None:
            return None
        servers, memory, result = outcome
        results = _with(event.results, place, result)
        if call is not None:
            task = self._settled(event.worker, task._replace(memory=memory, results=results), call, servers)
        elif PENDING in results:
            task = task._replace(memory=memory, finished=results)
        else:
            task = task._replace(memory=memory._replace(to_finish=memory.to_finish - 1), finished=())
        return self._servers.of(servers), self._tasks.of(task)

    def _begin(self, index: int, servers: Servers) -> Task:
        """Return a worker's new process, which joins in a new session."""
        memory = Memory(tuple(ps.born for ps in servers.ps))
        return self._called(index, Task(memory), servers)

    def _settled(self, index: int, task: Task, call: Call, servers: Servers) -> Task:
        """Return a task after all that it does without a server."""
        while True:
            task = self._here(index, task, call, servers)
            if PENDING in task.results:
                return task
            life = task.life._replace(answers=(*task.life.answers, task.results))
            return self._called(index, task._replace(life=life), servers)

    def _here(self, index: int, task: Task, call: Call, servers: Servers) -> Task:
        for place, op in enumerate(call.ops):
            ready = task.results[place] is PENDING and all(task.results[each] is not PENDING for each in op.after)
            if op.server is None and ready:
                outcome = happen(Event(servers, task.memory, index, op, task.results))
                if outcome is not None:
                    task = task._replace(memory=outcome[1], results=_with(task.results, place, outcome[2]))
        return task

    def _called(self, index: int, task: Task, servers: Servers) -> Task:
        """Return a task in its next call."""
        found = proceed(self._run, index, task.life, sum(task.memory.born))
        if found == FINISHED:
            return task._replace(life=Life(), results=(), has_finished=True)
        if found == AGAIN:
            return self._begin(index, servers)
        if isinstance(found, Life):
            return self._called(index, task._replace(life=found, results=()), servers)
        return self._settled(index, task._replace(results=(PENDING,) * len(found.ops)), found, servers)


def _with(items: Tuple[Any, ...], index: int, item: Any) -> Tuple[Any, ...]:
    return (*items[:index], item, *items[index + 1 :])


def _named(what: Any) -> str:
    if isinstance(what, str):
        return what
    worker, op = what
    return f"worker {worker}: {op.name} {op.args} on {op.server}"
