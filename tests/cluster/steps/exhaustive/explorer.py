"""Every state that a run can reach: breadth first, so that what is found first is the shortest history."""

import gc
from collections import deque
from typing import Any, Deque, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from tests.cluster.steps.exhaustive.lives import AGAIN, FINISHED, finishing, proceed
from tests.cluster.steps.exhaustive.servers import Event, Lost, Memory, Op, Ps, Servers, Wrong, fresh, happen
from tests.cluster.steps.exhaustive.sessions import Call, Life, Run


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
    """A state of the run, and how many workers and servers may still die."""

    servers: Servers
    tasks: Tuple[Task, ...]
    deaths: int = 0
    deaths_of_ps: int = 0


class Found(NamedTuple):
    """What an exploration has found: the number of states, and the first broken promise with the way to it."""

    states: int
    wrong: Optional[str] = None
    way: Tuple[str, ...] = ()


class Explorer:
    """Explore all states of a run with so many deaths."""

    def __init__(self, run: Run, deaths: int = 0, deaths_of_ps: int = 0, most: int = 3_000_000):
        self._run, self._most, self._deaths = run, most, deaths + deaths_of_ps
        servers = fresh(run.workers, run.ps * run.pushes)
        tasks = tuple(self._begin(index, servers) for index in range(run.workers))
        self._first = State(servers, tasks, deaths, deaths_of_ps)

    def explore(self) -> Found:
        """Return what is found."""
        collects = gc.isenabled()
        gc.disable()  # which would look at millions of states again and again
        try:
            return self._explore()
        finally:
            if collects:
                gc.enable()

    def _explore(self) -> Found:
        came: Dict[State, Optional[Tuple[State, str]]] = {self._first: None}
        quiet: Dict[State, List[State]] = {}  # by state: those from which it is reached without a death
        queue: Deque[State] = deque([self._first])
        ends: List[State] = []
        while queue:
            state = queue.popleft()
            try:
                for name, after, is_death in self._next(state):
                    if after not in came:
                        came[after] = (state, name)
                        queue.append(after)
                    if not is_death:
                        quiet.setdefault(after, []).append(state)
            except Wrong as wrong:
                return Found(len(came), str(wrong), self._way(state, came))
            has_ended = [task.has_finished for task in state.tasks]
            lost = any(ps.born for ps in state.servers.ps) and any(has_ended)  # who returns is the launcher's matter
            if all(has_ended) or lost:
                ends.append(state)
            if len(came) > self._most:
                raise MemoryError(f"more than {self._most} states")
        stuck = self._stuck(came, quiet, ends)
        if stuck is not None:
            return Found(len(came), "nobody can end training from here", self._way(stuck, came))
        return Found(len(came))

    def _stuck(self, came: Any, quiet: Dict[State, List[State]], ends: List[State]) -> Optional[State]:
        """Return a state from which the end cannot be reached without a further death; None for none."""
        good: Set[State] = set(ends)
        todo = list(ends)
        while todo:
            for before in quiet.get(todo.pop(), ()):
                if before not in good:
                    good.add(before)
                    todo.append(before)
        return next((state for state in came if state not in good), None)

    def _way(self, state: State, came: Any) -> Tuple[str, ...]:
        way = []
        at = came[state]
        while at is not None:
            way.append(at[1])
            at = came[at[0]]
        return tuple(reversed(way))

    def _next(self, state: State) -> Iterator[Tuple[str, State, bool]]:
        for index, task in enumerate(state.tasks):
            yield from self._finish(state, index, task)  # also while the chief waits for the others at the end
            if task.has_finished:
                continue
            call = proceed(self._run, index, task.life, sum(task.memory.born))
            for place, op in enumerate(call.ops):
                if task.results[place] is not PENDING or any(task.results[each] is PENDING for each in op.after):
                    continue
                after = self._after(state, index, task, call, place)
                if after is not None:
                    yield f"worker {index}: {op.name} {op.args} on {op.server}", after, False
            if any(self._is_lost(op, state, task) for op, result in self._under_way(task, call) if result is PENDING):
                begun = self._begin(index, state.servers)
                yield f"worker {index} notices", state._replace(tasks=_with(state.tasks, index, begun)), False
            if state.deaths:
                new = self._begin(index, state.servers)
                dead = state._replace(tasks=_with(state.tasks, index, new), deaths=state.deaths - 1)
                yield f"worker {index} dies", dead, True
        for index in range(self._run.ps if state.deaths_of_ps else 0):
            yield f"ps {index} dies", self._without(state, index), True

    def _under_way(self, task: Task, call: Call) -> List[Tuple[Op, Any]]:
        """Return all operations of a task, each with its result."""
        return [*zip(call.ops, task.results), *zip(finishing(self._run), task.finished)]

    def _finish(self, state: State, index: int, task: Task) -> Iterator[Tuple[str, State, bool]]:
        """Return what the chief's ``Finisher`` may do next."""
        if not task.memory.to_finish:
            return
        ops = finishing(self._run)
        results = task.finished or (PENDING,) * len(ops)
        for place, op in enumerate(ops):
            if results[place] is not PENDING or any(results[each] is PENDING for each in op.after):
                continue
            try:
                outcome = happen(Event(state.servers, task.memory, index, op, results))
            except Lost:
                begun = self._begin(index, state.servers)
                yield "the finisher loses its session", state._replace(tasks=_with(state.tasks, index, begun)), False
                continue
            if outcome is not None:
                servers, memory, result = outcome
                finished = _with(results, place, result)
                if PENDING not in finished:
                    finished, memory = (), memory._replace(to_finish=memory.to_finish - 1)
                after = _with(state.tasks, index, task._replace(memory=memory, finished=finished))
                yield f"finisher: {op.name} {op.args} on {op.server}", State(servers, after, *state[2:]), False

    def _is_lost(self, op: Op, state: State, task: Task) -> bool:
        """Return whether an operation is on a server that has started again: its whole call ends then."""
        return op.server is not None and state.servers.ps[op.server].born != task.memory.born[op.server]

    def _without(self, state: State, index: int) -> State:
        first, pushes = index * self._run.pushes, self._run.pushes
        empty = Ps(born=state.servers.ps[first].born + 1, turns=((),) * self._run.workers)
        whole = (*state.servers.ps[:first], *(empty,) * pushes, *state.servers.ps[first + pushes :])
        servers = state.servers._replace(ps=whole)
        if index == 0:
            servers = servers._replace(step=None, era=None, counts=None, tokens=((),) * self._run.workers)
        return state._replace(servers=servers, deaths_of_ps=state.deaths_of_ps - 1)

    def _after(self, state: State, index: int, task: Task, call: Call, place: int) -> Optional[State]:
        try:
            has_lost = state.deaths + state.deaths_of_ps < self._deaths
            outcome = happen(Event(state.servers, task.memory, index, call.ops[place], task.results, has_lost))
        except Lost:
            return state._replace(tasks=_with(state.tasks, index, self._begin(index, state.servers)))
        if outcome is None:
            return None
        servers, memory, result = outcome
        changed = task._replace(memory=memory, results=_with(task.results, place, result))
        return state._replace(
            servers=servers, tasks=_with(state.tasks, index, self._settled(index, changed, call, servers))
        )

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
