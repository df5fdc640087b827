"""No order of events and no death makes a synchronous step of other gradients than one of every worker.

Not in this model: two operations of one server that follow each other without the worker, such as a gradient and its
note, happen together. A worker that dies has no operation under way any more.
"""

from typing import Any, Dict, List, Sequence, Set, Tuple

import pytest

from cluster.runtime.devices import ps_device
from cluster.runtime.tf_compat import tf
from cluster.steps.base_worker import StepParts
from cluster.steps.exchange import Exchange
from cluster.steps.overlapped_sync import OverlappedSyncOptimizer, OverlappedWorker
from cluster.steps.token_sync import TokenSyncOptimizer, empty_accumulators
from cluster.variables.layout import Bucket
from cluster.variables.local_copies import LocalCopies
from cluster.variables.wire_format import Wire
from tests.cluster.steps.exhaustive import lives
from tests.cluster.steps.exhaustive.explorer import Explorer, Found
from tests.cluster.steps.exhaustive.lives import Worker
from tests.cluster.steps.exhaustive.operations import Optimizer, OverlappedOptimizer
from tests.cluster.steps.exhaustive.servers import OPERATIONS, Event, Op
from tests.cluster.steps.exhaustive.sessions import Run
from tests.cluster.steps.exhaustive.symmetry import Twins


def found(run: Run, deaths: int = 0, deaths_of_ps: int = 0) -> Found:
    lives.proceed.cache_clear()
    return Explorer(run, deaths, deaths_of_ps).explore()


@pytest.mark.parametrize(
    ("run", "deaths", "deaths_of_ps"),
    [
        (Run(workers=3, ps=2, steps=2), 0, 0),
        (Run(workers=2, ps=2, steps=2), 1, 0),
        (Run(workers=2, ps=2, steps=2), 0, 1),
        (Run(workers=2, ps=1, steps=2), 2, 0),
        (Run(workers=2, ps=2, steps=1, overlaps=True), 0, 0),
        (Run(workers=2, ps=1, steps=1, overlaps=True, pushes=2), 1, 0),
        (Run(workers=2, ps=1, steps=2, overlaps=True), 1, 0),
        (Run(workers=2, ps=1, steps=2, overlaps=True), 0, 1),
        (Run(workers=3, ps=1, steps=1, backup=1), 0, 0),
        (Run(workers=2, ps=1, steps=1, backup=1), 1, 0),
        (Run(workers=2, ps=1, steps=1, backup=1), 0, 1),
    ],
)
def test_every_step_is_of_one_gradient_of_every_worker_and_training_ends(
    run: Run, deaths: int, deaths_of_ps: int
) -> None:
    what = found(run, deaths, deaths_of_ps)
    assert what.wrong is None, "\n".join([what.wrong, *what.way])
    assert what.states > 1000


@pytest.mark.parametrize("run", [Run(3, 1, 1), Run(3, 1, 1, overlaps=True), Run(3, 1, 1, backup=1)])
def test_each_state_has_a_twin_with_workers_1_and_2_exchanged_and_one_of_both_is_explored(run: Run) -> None:
    every = Explorer(run, halves=False)
    assert every.explore().wrong is None
    twins = Twins(run, every._servers, every._tasks)
    states = [every._unpacked(packed) for packed in every.reached.states]
    pairs = {(state, state._replace(servers=servers, tasks=tasks)) for state in states
             for servers, tasks in [twins.of(state.servers, state.tasks)]}  # fmt: skip
    assert {twin for _, twin in pairs} == set(states)
    assert Explorer(run).explore().states == len({min(pair) for pair in pairs})


# -- mistakes that it finds: the four that it has found in the product, and another


def test_a_worker_that_gives_again_what_its_predecessor_gave_is_found(monkeypatch: Any) -> None:
    monkeypatch.setattr(Worker, "_rejoin", lambda worker, session, step: worker._begin(session, step))
    assert found(Run(2, 2, 1), deaths=1).wrong == "a step on ps:1 has gradients of workers [1, 1]"


def test_a_step_that_is_skipped_before_the_gradients_are_dropped_is_found(monkeypatch: Any) -> None:
    def skip(worker: Any, session: Any) -> int:
        step = int(session.run(worker._skip))
        empty_accumulators(session, worker._optimizer, worker._stamp + 1)
        session.run(worker._count_own, {worker._number: step})
        session.run(worker._optimizer.announce)
        return step

    monkeypatch.setattr(Worker, "_skip_step", skip)
    assert found(Run(2, 1, 2), deaths=2).wrong == "nobody can end training from here"


def test_last_tokens_that_nobody_sends_are_found(monkeypatch: Any) -> None:
    monkeypatch.setattr(Optimizer, "_announce", lambda optimizer, ops, feeds: lambda results: None)
    assert found(Run(2, 1, 1), deaths=1).wrong == "nobody can end training from here"


def test_a_token_before_the_step_is_applied_is_found(monkeypatch: Any) -> None:
    def finish(optimizer: Optimizer, ops: List[Op]) -> Tuple[int, ...]:
        count = len(ops)
        sent = whole(optimizer, ops)
        ops[count:] = [op._replace(after=()) if op.name == "next step" else op for op in ops[count:]]
        return sent

    whole = Optimizer._finish
    monkeypatch.setattr(Optimizer, "_finish", finish)
    assert found(Run(2, 2, 2)).wrong == "step 1 on ps:0 has a gradient of another step"


def test_a_worker_that_drops_the_tokens_that_let_it_go_is_found(monkeypatch: Any) -> None:
    monkeypatch.setattr(OverlappedWorker, "_others_began", lambda worker, session: True)
    assert found(Run(2, 1, 1, overlaps=True), deaths=1).wrong == "nobody can end training from here"


def test_a_late_gradient_that_is_not_dropped_is_found(monkeypatch: Any) -> None:
    def push(event: Event) -> Any:
        return whole(event._replace(servers=event.servers.on(event.op.server or 0, stamp=0)))

    whole = OPERATIONS["push"]
    monkeypatch.setitem(OPERATIONS, "push", push)
    assert found(Run(2, 1, 2, backup=1)).wrong == "step 1 on ps:0 has a gradient of another step"


# -- the model's step is the graph's

KINDS = {
    "AccumulatorApplyGradient": "push",
    "ResourceAccumulatorApplyGradient": "push",
    "AccumulatorTakeGradient": "take",
    "ResourceAccumulatorTakeGradient": "take",
    "ApplyGradientDescent": "apply",
    "AssignAdd": "next step",
    "QueueEnqueueManyV2": "send",
    "QueueDequeueManyV2": "take newest",
    "QueueDequeueV2": "turn",
    "StatefulPartitionedCall": "send turns",
}
Node = Tuple[str, int]


@pytest.mark.parametrize("run", [Run(3, 2, 1), Run(3, 2, 1, overlaps=True), Run(3, 2, 1, backup=1)])
@pytest.mark.parametrize("worker", [0, 1])
def test_the_operations_of_a_step_come_in_the_order_of_the_graph(worker: int, run: Run) -> None:
    ops: List[Op] = []
    (OverlappedOptimizer if run.overlaps else Optimizer)(run, worker)._step(ops, {})
    assert _order_of_model(ops) == _order_of_graph(_step_of(worker, run))


def test_the_operations_of_the_chief_s_thread_come_in_the_order_of_the_graph() -> None:
    run = Run(3, 2, 1, backup=1)
    assert _order_of_model(lives.finishing(run)) == _order_of_graph(_step_of(0, run, is_whole=False))


def test_no_server_is_done_with_an_overlapped_step_before_all_pushes_are_applied() -> None:
    ops = _step_of(0, Run(3, 2, 1, overlaps=True))
    takes = {op for op in ops if KINDS.get(op.type) == "take"}
    assert {_server(op) for op in ops if takes <= ops[op] and "/job:ps" in op.device} == {0, 1}
    last = {op for op in ops if takes <= ops[op] and KINDS.get(op.type) == "next step"}
    ends = {op for op in ops if takes <= ops[op] and any(op in ops[each] for each in last)}
    assert {_server(op) for op in ends if "/job:ps" in op.device} == {0, 1}


def _order_of_model(ops: Sequence[Op]) -> Set[Tuple[Node, Node]]:
    known = {*KINDS.values(), "count"}
    return {
        (_node(ops[before]), _node(op))
        for place, op in enumerate(ops)
        for before in _before(ops, place)
        if op.name in known and ops[before].name in known
    }


def _node(op: Op) -> Node:
    return op.name, op.server or 0


def _before(ops: Sequence[Op], place: int) -> Set[int]:
    return {place for each in ops[place].after for place in (each, *_before(ops, each))}


def _order_of_graph(ops: Dict[Any, Set[Any]]) -> Set[Tuple[Node, Node]]:
    """Return the pairs of operations on the servers, of which one comes after the other in each step."""
    kinds = {op: "count" if _counts(op) else KINDS.get(op.type) for op in ops}
    nodes = {op: (kind, _server(op)) for op, kind in kinds.items() if kind}
    return {(nodes[before], node) for op, node in nodes.items() for before in ops[op] if before in nodes}


def _counts(op: Any) -> bool:
    return op.type in ("ScatterAdd", "ScatterMax") and op.inputs[0].name.endswith("/contributions:0")


def _server(op: Any) -> int:
    return int(op.device.split("task:")[1].split("/")[0])


def _step_of(worker: int, run: Run, is_whole: bool = True) -> Dict[Any, Set[Any]]:
    """Return the operations of a worker's step, or of the chief's thread beside it, each with those before it."""
    host = f"/job:worker/task:{worker}/device:CPU:0"
    with tf.Graph().as_default(), tf.device(host):
        with tf.device(ps_device(0)):
            global_step = tf.train.get_or_create_global_step()
        buckets = [Bucket(index, 0, (f"v{index}",)) for index in range(2)] if run.overlaps else []
        copies = LocalCopies(buckets, {f"v{index}": (2,) for index in range(2)}, host)
        pairs = []
        for index in range(2):
            with tf.device(ps_device(index)):
                variable = tf.get_variable(f"v{index}", [2], initializer=tf.zeros_initializer(), use_resource=False)
            pairs.append((tf.ones([2]), variable))
        copies.adopt([variable for _, variable in pairs])
        descent = tf.train.GradientDescentOptimizer(1.0)
        exchange = Exchange(copies, Wire())
        loss = tf.constant(0.0)
        parts = StepParts(descent, pairs, global_step, loss, 3, worker, exchange, backup_workers=run.backup)
        optimizer = (OverlappedSyncOptimizer if run.overlaps else TokenSyncOptimizer)(parts)
        token = optimizer.apply_gradients(pairs, global_step)
    last = token.op if is_whole else optimizer.finish
    above: Dict[Any, Set[Any]] = {}
    return {op: _above(op, above) for op in _above(last, above) | {last}}


def _above(op: Any, known: Dict[Any, Set[Any]]) -> Set[Any]:
    if op not in known:
        direct = {each.op for each in op.inputs} | set(op.control_inputs)
        known[op] = direct.union(*(_above(each, known) for each in direct))
    return known[op]
