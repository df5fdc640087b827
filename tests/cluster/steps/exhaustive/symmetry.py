"""Workers 1 and 2 run the same code, so each state has a twin in which they are exchanged: one of the two is explored.

The numbers of a twin are found once for each number of a state. ``test_every_death.py`` explores small runs both ways:
all their states, and one of each two.
"""

from typing import Any, Dict, Optional, Sequence, Tuple

from tests.cluster.steps.exhaustive.lives import finishing, proceed
from tests.cluster.steps.exhaustive.reached import Numbers
from tests.cluster.steps.exhaustive.servers import Gradient, Op, Ps, Servers
from tests.cluster.steps.exhaustive.sessions import Life, Run

WORKERS = 3
_TWIN = (0, 2, 1)  # of each worker
_OF_WORKER = ("send", "drain", "drain turns")  # operations whose first argument is a worker
_OF_ALL = ("counts", "given")  # those whose result has a number for each worker


class Twins:
    """The numbers of servers and tasks in which workers 1 and 2 are exchanged."""

    def __init__(self, run: Run, servers: Numbers[Servers], tasks: Numbers[Any]):
        assert run.workers == WORKERS, f"{run.workers} workers"
        self._run, self._all_servers, self._all_tasks = run, servers, tasks
        self._servers: Dict[int, int] = {}
        self._tasks: Dict[Tuple[int, int], int] = {}

    def of(self, servers: int, tasks: Sequence[int]) -> Tuple[int, Tuple[int, ...]]:
        """Return the numbers of a state's twin."""
        chief, first, second = tasks
        return self._of_servers(servers), (self._of_task(0, chief), self._of_task(2, second), self._of_task(1, first))

    def _of_servers(self, number: int) -> int:
        if number not in self._servers:
            twin = self._all_servers.of(_exchanged(self._all_servers[number]))
            self._servers[number], self._servers[twin] = twin, number
        return self._servers[number]

    def _of_task(self, worker: int, number: int) -> int:
        key = worker, number
        if key not in self._tasks:
            twin = self._all_tasks.of(self._task(worker, self._all_tasks[number]))
            self._tasks[key], self._tasks[_TWIN[worker], twin] = twin, number
        return self._tasks[key]

    def _task(self, worker: int, task: Any) -> Any:
        """Return what the other worker's task is in the twin; that of the chief stays the chief's."""
        starts = sum(task.memory.born)
        life = twin = Life(task.life.attributes)
        for answer in task.life.answers:
            life, twin = (
                life._replace(answers=(*life.answers, answer)),
                twin._replace(answers=(*twin.answers, self._swapped(worker, life, twin, starts, answer))),
            )
        results = task.results and self._swapped(worker, life, twin, starts, task.results)
        finished = task.finished and _results(finishing(self._run), finishing(self._run), task.finished)
        return task._replace(life=twin, results=results, finished=finished)

    def _swapped(self, worker: int, life: Life, twin: Life, starts: int, results: Sequence[Any]) -> Tuple[Any, ...]:
        """Return the results of a call of a worker with this life as the twin has them."""
        ops = proceed(self._run, worker, life, starts).ops
        return _results(ops, proceed(self._run, _TWIN[worker], twin, starts).ops, results)


def _exchanged(servers: Servers) -> Servers:
    return servers._replace(
        ps=tuple(_ps(each) for each in servers.ps), counts=_each(servers.counts), tokens=_each(servers.tokens)
    )


def _ps(ps: Ps) -> Ps:
    return ps._replace(gradients=_gradients(ps.gradients), given=_each(ps.given), turns=_each(ps.turns))


def _gradients(gradients: Sequence[Gradient]) -> Tuple[Gradient, ...]:
    return tuple(sorted(each._replace(worker=_TWIN[each.worker]) for each in gradients))


def _each(items: Optional[Sequence[Any]]) -> Any:
    return items and tuple(items[twin] for twin in _TWIN)


def _results(ops: Sequence[Op], twin_ops: Sequence[Op], results: Sequence[Any]) -> Tuple[Any, ...]:
    """Return the results of a call in the twin's order of operations."""
    free = list(enumerate(twin_ops))
    found: Dict[int, Any] = {}
    for op, result in zip(ops, results):
        args = (_TWIN[op.args[0]], *op.args[1:]) if op.name in _OF_WORKER else op.args
        at = next(at for at, (_, each) in enumerate(free) if each[:3] == (op.name, op.server, args))
        found[free.pop(at)[0]] = _result(op, result)
    return tuple(found[place] for place in range(len(twin_ops)))


def _result(op: Op, result: Any) -> Any:
    if not isinstance(result, tuple):
        return result
    return _each(result) if op.name in _OF_ALL else _gradients(result) if op.name == "take" else result
