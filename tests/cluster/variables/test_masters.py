"""The servers' variables: whole or in slices, with the values that the author's initializers give the whole."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple

import numpy as np
import pytest

from cluster.model.mirrors import Mirrors, NotedInitializers
from cluster.runtime.devices import worker_device
from cluster.runtime.tf_compat import tf
from cluster.variables.layout import Layout
from cluster.variables.masters import Masters, plain_name, saved_variables
from cluster.variables.placement import assign
from cluster.variables.profile import profile_variables
from cluster.variables.uses import ancestors
from tests.cluster.steps.test_sync_worker import servers_of

ROWS, WIDTH = 6000, 32  # 0.75 MiB: in slices on two servers
HOST = worker_device("worker", 0)


@pytest.fixture(scope="module")
def target() -> str:
    return servers_of([("ps", 2), ("worker", 1)])[0]


def session(target: str) -> Any:
    """A session on the default graph, with variables of its own."""
    return tf.Session(target, config=tf.ConfigProto(isolate_session_state=True))


class Made(NamedTuple):
    """A worker's variables by name, and the servers'."""

    variables: Dict[str, Any]
    layout: Layout
    masters: Masters


def made(build: Callable[[], Any], **kinds: Any) -> Made:
    """What ``build`` makes; ``kinds`` says of a variable that it is a "table", or "dense": it travels whole."""
    noted = NotedInitializers()
    with tf.device(HOST):
        with noted.scope():
            build()
        variables = {each.op.name: each for each in tf.global_variables()}
        found = profile_variables(list(variables.values()), {}, True, set())
        for name, kind in kinds.items():
            found[name] = replace(found[name], is_dense=kind == "dense", lookups=8 if kind == "table" else None)
        layout = Layout(found, 2)
        return Made(variables, layout, Masters(layout, assign(layout.sizes, 2), variables, noted.found))


def first_values(target: str, found: Made, *fetches: Any) -> List[Any]:
    """What ``fetches`` are when the servers' variables have their first values; a table has none on the worker."""
    own = [each for name, each in found.variables.items() if not found.masters.is_table(name)]
    steps = [tf.variables_initializer(own), found.masters.first_values()]
    with session(target) as running:
        for step in steps:
            running.run(step)
        values: List[Any] = running.run(list(fetches))
        return values


def matrix(name: str = "w", initializer: Any = None) -> Any:
    return tf.get_variable(name, [ROWS, WIDTH], initializer=initializer)


def table_of(target: str, initializer: Any) -> List[Any]:
    """The first values of each slice of a table."""
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        found = made(lambda: matrix("t", initializer), t="table")
        assert len(found.masters.pieces["t"]) == 2
        return first_values(target, found, *found.masters.pieces["t"])


@pytest.mark.parametrize("kind", ["dense", "table"])
def test_slices_have_names_under_the_authors_and_devices_of_their_servers(kind: str) -> None:
    with tf.Graph().as_default():
        pieces = made(matrix, w=kind).masters.pieces["w"]
        assert [each.op.name for each in pieces] == [f"servers/w/part_{index}" for index in range(len(pieces))]
        assert [plain_name(each) for each in pieces] == [f"w/part_{index}" for index in range(len(pieces))]
        assert {each.device for each in pieces} == {f"/job:ps/task:{index}/device:CPU:0" for index in (0, 1)}


def test_they_are_in_no_collection_so_nothing_of_the_authors_finds_them() -> None:
    with tf.Graph().as_default():
        made(matrix, w="dense")
        assert [each.op.name for each in tf.global_variables()] == ["w"]
        assert [each.op.name for each in tf.trainable_variables()] == ["w"]


def test_the_first_values_of_what_is_read_whole_are_those_of_the_chief(target: str) -> None:
    with tf.Graph().as_default():
        found = made(lambda: matrix(initializer=tf.orthogonal_initializer()), w="dense")
        assert len(found.masters.pieces["w"]) > 2
        own, *slices = first_values(target, found, found.variables["w"], *found.masters.pieces["w"])
        np.testing.assert_array_equal(np.concatenate(slices), own)
        np.testing.assert_allclose(own.T @ own, np.eye(WIDTH), atol=1e-4)  # of the whole, not of each slice


@pytest.mark.parametrize("kind", ["dense", "table"])
@pytest.mark.parametrize("use_resource", [False, True])
def test_a_variable_begins_with_the_value_of_a_checkpoint_that_the_author_has_named(
    target: str, tmp_path: Path, kind: str, use_resource: bool
) -> None:
    values = np.random.RandomState(0).normal(size=[ROWS, WIDTH]).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as running:
        variable = tf.get_variable("old", initializer=values)
        running.run(variable.initializer)
        path = tf.train.Saver().save(running, str(tmp_path / "model"))

    def build() -> None:
        tf.get_variable("w", [ROWS, WIDTH], initializer=tf.zeros_initializer(), use_resource=use_resource)
        tf.train.init_from_checkpoint(path, {"old": "w"})

    with tf.Graph().as_default():
        found = made(build, w=kind)
        np.testing.assert_array_equal(np.concatenate(first_values(target, found, *found.masters.pieces["w"])), values)


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize(
    "initializer",
    [
        tf.random_normal_initializer,
        tf.random_uniform_initializer,
        tf.truncated_normal_initializer,
        tf.variance_scaling_initializer,
        tf.glorot_uniform_initializer,
    ],
)
def test_slices_of_a_table_are_drawn_by_the_authors_initializer_and_are_not_alike(
    target: str, initializer: Any, seed: Any
) -> None:
    first, second = table_of(target, initializer(seed=seed))
    with tf.Graph().as_default(), tf.Session() as running:
        whole = running.run(initializer(seed=3)([ROWS, WIDTH]))
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.02
    np.testing.assert_allclose([first.std(), second.std()], whole.std(), rtol=0.02)


@pytest.mark.parametrize(
    "initializer", [tf.zeros_initializer(), tf.ones_initializer(), tf.constant_initializer(2.5), None]
)
def test_a_tables_value_is_never_made_whole_where_each_element_is_drawn_by_itself(initializer: Any) -> None:
    with tf.Graph().as_default() as graph:
        found = made(lambda: matrix("t", initializer), t="table")
        needed = {op.name for op in ancestors([found.masters.first_values()])}
        assert not {name for name in needed if name.startswith("t/")} and graph.get_operations()


def test_a_table_that_is_given_as_an_array_has_its_rows(target: str) -> None:
    values = np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH)
    np.testing.assert_array_equal(np.concatenate(table_of(target, tf.constant_initializer(values))), values)


def test_a_table_whose_initializer_needs_all_of_it_is_made_whole(target: str) -> None:
    whole = np.concatenate(table_of(target, tf.orthogonal_initializer()))
    np.testing.assert_allclose(whole.T @ whole, np.eye(WIDTH), atol=1e-4)


def test_what_is_written_and_read_again_is_the_same(target: str) -> None:
    values = np.random.RandomState(0).rand(ROWS, WIDTH).astype(np.float32)
    with tf.Graph().as_default():
        found = made(matrix, w="dense")
        written = found.masters.write("w", tf.constant(values))
        with tf.control_dependencies(written):
            again = found.masters.read("w")
        np.testing.assert_array_equal(first_values(target, found, again)[0], values)


def test_a_gradient_is_split_as_its_variable_is_and_joined_again(target: str) -> None:
    with tf.Graph().as_default():
        found = made(matrix, w="dense")
        grad = tf.random.uniform([ROWS, WIDTH])
        parts = found.masters.split("w", grad)
        assert [part.shape for part in parts] == [piece.shape for piece in found.masters.pieces["w"]]
        with session(target) as running:
            np.testing.assert_array_equal(*running.run([grad, found.masters.join("w", parts)]))


def test_variables_of_any_type_have_one_on_a_server_with_their_values(target: str) -> None:
    def build() -> None:
        for kind, value in ((tf.string, "a"), (tf.int64, 3), (tf.bool, True), (tf.float64, 0.5)):
            tf.get_variable(kind.name, [2], kind, tf.constant_initializer(value), trainable=False)

    with tf.Graph().as_default():
        found = made(build)
        assert [each.dtype.base_dtype for each in found.masters.all] == [tf.string, tf.int64, tf.bool, tf.float64]
        values = first_values(target, found, *found.masters.all)
        assert [value.tolist() for value in values] == [[b"a"] * 2, [3] * 2, [True] * 2, [0.5] * 2]


def test_a_checkpoint_has_the_authors_names_and_where_each_slice_begins() -> None:
    with tf.Graph().as_default():
        found = made(lambda: (matrix(), tf.get_variable("b", [3])), w="table")
        assert [(each.name, each.full_shape, each.offset) for each in saved_variables(found.masters.all)] == [
            ("w", (ROWS, WIDTH), (0, 0)),
            ("w", (ROWS, WIDTH), (ROWS // 2, 0)),
            ("b", (3,), (0,)),
        ]


def test_slots_of_slices_are_saved_under_the_name_of_one_slot_of_the_whole() -> None:
    with tf.Graph().as_default():
        masters = made(matrix, w="table").masters
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        optimizer.apply_gradients([(tf.zeros_like(piece), piece) for piece in masters.pieces["w"]])
        slots = [optimizer.get_slot(piece, "momentum") for piece in masters.pieces["w"]]
        assert [(each.name, each.offset) for each in saved_variables(slots)] == [
            ("w/Momentum", (0, 0)),
            ("w/Momentum", (ROWS // 2, 0)),
        ]


def test_a_variable_that_the_author_has_cut_keeps_its_own_place_in_the_whole() -> None:
    def build() -> None:
        tf.get_variable("w", [10, 4], partitioner=tf.fixed_size_partitioner(2))

    with tf.Graph().as_default():
        found = saved_variables(made(build).masters.all)
        assert [(each.name, each.full_shape, each.offset) for each in found] == [
            ("w", (10, 4), (0, 0)),
            ("w", (10, 4), (5, 0)),
        ]


def test_a_worker_takes_what_came_in_buckets_and_fetches_the_rest_and_its_step(target: str) -> None:
    with tf.Graph().as_default():
        found = made(lambda: (matrix(), tf.get_variable("b", [3]), tf.get_variable("idle", [3])), w="dense")
        with tf.device(HOST):
            step = tf.train.get_or_create_global_step()
            mirrors = Mirrors(found.variables, step, found.layout, found.masters)
            came = {
                piece.name: tf.fill(piece.shape, index + 1.0) for index, piece in enumerate(found.layout.pieces("w"))
            }
            assigned = mirrors.assign(came, ["b"], tf.constant(7, tf.int64))
            elsewhere = [op for name in ("b", "idle") for op in found.masters.write(name, tf.fill([3], 9.0))]
            with tf.control_dependencies(elsewhere):
                ready = tf.no_op()
        with session(target) as running:
            running.run([tf.global_variables_initializer()])
            before = running.run(found.variables["idle"])
            running.run(ready)
            running.run(assigned)
            w, b, idle, now = running.run([*found.variables.values(), step])
    lengths = [piece.shape[0] for piece in found.layout.pieces("w")]
    np.testing.assert_array_equal(w[:, 0], np.repeat(np.arange(len(lengths)) + 1.0, lengths))
    assert b.tolist() == [9.0] * 3 and now == 7
    np.testing.assert_array_equal(idle, before)


def test_a_worker_that_begins_gets_everything_from_the_servers_but_tables(target: str) -> None:
    with tf.Graph().as_default():
        found = made(lambda: (matrix(), matrix("t"), tf.get_variable("b", [3])), w="dense", t="table")
        with tf.device(HOST):
            step = tf.train.get_or_create_global_step()
            filled = Mirrors(found.variables, step, found.layout, found.masters).fill(tf.constant(7, tf.int64))
            written = [found.masters.write(name, tf.fill(found.variables[name].shape, 4.0)) for name in "wtb"]
            without = [tf.is_variable_initialized(found.variables[name]) for name in "wtb"]
        with session(target) as running:
            running.run(written)
            running.run(filled)
            assert running.run(without) == [True, False, True] and running.run(step) == 7
            assert all((value == 4).all() for value in running.run([found.variables[name] for name in "wb"]))
