"""Each row's constructions are what the row is about: shown in the graph of two copies, in plain TensorFlow."""

import contextlib
from typing import Any, Callable, Dict, Iterator, List, NamedTuple

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tests.differential.constructions.axes import CONTROL_FLOW_V2, ONLY_TF1, Construction
from tests.differential.constructions.functions import control_flow_of
from tests.differential.constructions.models import composed
from tests.differential.constructions.rows import ROWS, examples
from tests.differential.data import examples as numbers

_IS_1 = tf.version.VERSION.startswith("1.")
_CHANGES = ("Assign", "AssignAdd", "AssignSub", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
_BATCH, MOST = 4, 2  # examples of a copy; constructions of a row


class Built(NamedTuple):
    """Two copies of a model in one graph, under ``copy_0`` and ``copy_1``, and its optimizer."""

    graph: Any
    losses: List[Any]
    optimizer: Any
    pairs: List[Any]


@contextlib.contextmanager
def built(how: Construction) -> Iterator[Built]:
    """Both copies, differentiated one by one unless an optimizer cannot be asked."""
    job = composed(how.as_json())
    values = numbers(_BATCH, 6, 1)
    with tf.Graph().as_default() as graph, control_flow_of(how.inside):
        tf.train.get_or_create_global_step()
        losses, pairs, optimizer = [], [], None
        for copy in range(2):
            scope = tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE)
            with scope, tf.name_scope(f"copy_{copy}/"):
                losses.append(tf.reduce_mean(job.model(tf.constant(values["x"]), tf.constant(values["y"]), {})))
                optimizer = optimizer or job.optimizer({})
                if isinstance(optimizer, tf.train.Optimizer) and how.wrapper not in ("sync_replicas", "drop_stale"):
                    pairs.append(optimizer.compute_gradients(losses[-1]))
        yield Built(graph, losses, optimizer, pairs)


def updates() -> List[Any]:
    """The operations of UPDATE_OPS."""
    return [getattr(each, "op", each) for each in tf.get_collection(tf.GraphKeys.UPDATE_OPS)]


def changes(graph: Any, variable: str = "") -> List[Any]:
    """Operations outside of functions that change a variable, or any, initializers aside."""
    found = [op for op in graph.get_operations() if op.type in _CHANGES]
    changed = [(op, op.inputs[0].op.name) for op in found if op.name != f"{op.inputs[0].op.name}/Assign"]
    return [op for op, name in changed if name == variable or not variable]


def run(built: Built, what: Any) -> Any:
    """What a session makes of it that has just begun."""
    with tf.Session(graph=built.graph) as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return session.run(what)


def added_by_both(built: Built) -> bool:
    return len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 2


def has_terms_of_both(built: Built) -> bool:
    """The second copy's loss has the first one's term, too."""
    first, second = (run(built, loss) for loss in built.losses)
    return bool(second > first)


def has_another_gradient(built: Built) -> bool:
    variables = [variable for _, variable in built.pairs[0]]
    own = tf.gradients(built.losses[0], variables)
    mine, plain = run(built, [[grad for grad, _ in built.pairs[0]], own])
    return not all(np.allclose(a, b, rtol=1e-3) for a, b in zip(mine, plain))


def has_a_key(built: Built, fits: Callable[[str], bool]) -> bool:
    return isinstance(built.optimizer, dict) and any(map(fits, built.optimizer))


def is_nobodys(key: str) -> bool:
    return bool(key) and not any(each.op.name.startswith(key) for each in tf.trainable_variables())


def leaves_its_copy(built: Built) -> bool:
    return len(updates()) > 0 and not any(op.name.startswith("copy_") for op in updates())


def changes_outside_of_the_second_copy(built: Built) -> bool:
    found = changes(built.graph)
    return len(found) > 0 and not any(op.name.startswith("copy_1/") for op in found)


def registers_in_each_call(built: Built) -> bool:
    return len(updates()) > 1 and not any(op.name.startswith("copy_1/") for op in updates())


def is_hidden(built: Built, variable: str) -> bool:
    return not changes(built.graph, variable) and bool(built.graph._functions)


def has_a_rate_that_moves(built: Built) -> bool:
    rates = [getattr(built.optimizer, name, None) for name in ("_learning_rate", "_lr")]
    mine = [each for each in rates if each is not None]
    return mine[0].op.name == "schedule/rate" and bool(changes(built.graph, "schedule/rate"))


def counts_by_itself(built: Built) -> bool:
    with pytest.raises(AttributeError, match="assign_add"):
        built.optimizer.apply_gradients(built.pairs[0])
    return True


def skips_a_step(built: Built) -> bool:
    step = tf.train.get_global_step()
    applied = built.optimizer.apply_gradients(built.pairs[0], global_step=step)
    with tf.Session(graph=built.graph) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(4):
            session.run(applied)
        return 0 < int(session.run(step)) < 4


def carries(built: Built, collection: str) -> bool:
    found = [each.op.name for each in tf.get_collection(collection) if each.op.name.endswith("carried")]
    return bool(found) and len(changes(built.graph, found[0])) == 2  # the copies share it, and overwrite


def averages_by_the_step(built: Built) -> bool:
    return built.optimizer._average._num_updates is tf.train.get_global_step()


def has_newer_control_flow(built: Built) -> bool:
    return any(op.type in ("If", "StatelessIf", "While", "StatelessWhile") for op in built.graph.get_operations())


TRAITS: Dict[str, Callable[[Built], bool]] = {
    "S1 by hand": added_by_both,
    "S1 activity": added_by_both,
    "S1 layer": has_terms_of_both,
    "S1 object": has_terms_of_both,
    "S2 regularized": has_another_gradient,
    "S2 decaying": has_another_gradient,
    "S2 nonlinear": has_another_gradient,
    "S3 slash": lambda built: has_a_key(built, lambda key: key.endswith("/")),
    "S3 misspelt": lambda built: has_a_key(built, is_nobodys),
    "S4 dropped": leaves_its_copy,
    "S4 backwards": lambda built: (
        len(updates()) == 2 and all(any(op is each for each in updates()) for op in changes(built.graph))
    ),
    "S4 twice": changes_outside_of_the_second_copy,
    "S4 layer": registers_in_each_call,
    "S5 hidden": lambda built: is_hidden(built, "n"),
    "S5 trained": lambda built: is_hidden(built, "a/w"),
    "S6": has_a_rate_that_moves,
    "S7 average": averages_by_the_step,
    "S7 counts": counts_by_itself,
    "S7 skips": skips_a_step,
    "S7 on a part": skips_a_step,
    "S9 shared": lambda built: carries(built, tf.GraphKeys.LOCAL_VARIABLES),
    "S9 others": lambda built: carries(built, tf.GraphKeys.LOCAL_VARIABLES) and len(updates()) == 2,
    "S9 resumed": lambda built: any(
        carries(built, each) for each in (tf.GraphKeys.LOCAL_VARIABLES, tf.GraphKeys.GLOBAL_VARIABLES)
    ),
    "own collection": lambda built: not updates() and len(tf.get_collection("changed_by_the_author")) == 2,
    "crash mixed": lambda built: len({each.dtype.base_dtype for each in tf.trainable_variables()}) == 2,
    "crash control flow": has_newer_control_flow,
    "crash stock": lambda built: "Sync" in type(built.optimizer).__name__ or "Stale" in type(built.optimizer).__name__,
    "crash minimize": lambda built: type(built.optimizer).minimize is not tf.train.Optimizer.minimize,
}


def test_every_row_has_a_trait() -> None:
    assert list(TRAITS) == list(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_a_construction_of_a_row_is_what_the_row_is_about(name: str) -> None:
    if not _IS_1 and ROWS[name].way.get("runtime") == ("tf1",):
        pytest.skip("needs TensorFlow 1.15: its layers keep the losses of every call")
    mine = [
        how for how in examples(name) if _IS_1 or not any(getattr(how, axis) in of for axis, of in ONLY_TF1.items())
    ]
    assert mine
    for how in mine[:: -(-len(mine) // MOST)]:
        with built(how) as found:
            assert TRAITS[name](found), how


@pytest.mark.parametrize("inside", ["plain", *CONTROL_FLOW_V2])
def test_the_newer_control_flow_is_on_for_those_that_ask_for_it_alone(inside: str) -> None:
    with tf.Graph().as_default(), control_flow_of(inside):
        tf.cond(tf.constant(True), lambda: 1.0, lambda: 2.0)
        newer = any(op.type in ("If", "StatelessIf") for op in tf.get_default_graph().get_operations())
    assert newer == (inside in CONTROL_FLOW_V2)
