"""Lookups of generated ids give what numpy makes of the same rows; what a lookup cannot do is refused."""

from typing import Any, Callable, List, Tuple

import numpy as np
import pytest

from cluster import embedding
from cluster.recommend.tables.lookups import lookups
from cluster.runtime.tf_compat import tf
from cluster.variables.uses import ancestors
from tests.support.nightly import few

ROWS, WIDTH, SEEDS = 40, 3, range(12)
INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64)
COMBINE = {
    "sum": np.sum,
    "mean": np.mean,
    "sqrtn": lambda rows, axis: np.sum(rows, axis) / np.sqrt(rows.shape[axis]),
    "max": np.max,
}


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster.recommend.tables.lookups.MOST_ROWS", ROWS)


def value(make: Callable[[embedding.Table], Any]) -> Tuple[np.ndarray, np.ndarray]:
    """What a model's lookups in one table give, and the rows: that of an id is the one of its own number."""
    with tf.Graph().as_default() as graph:
        made = make(embedding.table("table", WIDTH))
        rows = np.random.RandomState(5).randn(ROWS, WIDTH).astype(np.float32)
        with tf.Session() as session:
            session.run(tf.assign(lookups(graph)[0].variable, rows).op)
            numbers = {each.numbers: session.run(each.ids) for each in lookups(graph)}
            found = session.run(made, numbers)
    assert list(made.shape[1:]) == list(found.shape[1:])  # known to the model's next layer
    return found, rows


def combined(rows: np.ndarray, ids: List[Any], combiner: str) -> np.ndarray:
    """One row an example; zeros for one without ids."""
    each = [COMBINE[combiner](rows[one], 0) if len(one) else np.zeros(WIDTH) for one in ids]
    return np.array(each).reshape([len(ids), WIDTH])


@pytest.mark.parametrize("seed", SEEDS)
def test_dense_ids_of_any_shape_and_width(seed: int) -> None:
    random = np.random.RandomState(seed)
    shape = random.randint(0 if seed % 4 == 0 else 1, 4, random.randint(0, 4))
    ids = random.randint(0, ROWS, shape).astype(INTEGERS[seed % len(INTEGERS)])
    found, rows = value(lambda table: embedding.lookup(table, tf.constant(ids)))
    np.testing.assert_array_equal(found, rows[ids])


@pytest.mark.parametrize("combiner", sorted(COMBINE))
@pytest.mark.parametrize("number", [0, 1, 4])
def test_dense_ids_combine_over_their_last_axis(combiner: str, number: int) -> None:
    ids = np.random.RandomState(number).randint(0, ROWS, [2, 3, number])
    found, rows = value(lambda table: embedding.lookup(table, tf.constant(ids), combiner))
    expected = combined(rows, list(ids.reshape([6, number])), combiner).reshape([2, 3, WIDTH])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def examples(seed: int) -> List[Any]:
    """Ids of some examples: none of them may have any."""
    random = np.random.RandomState(seed)
    most = 1 if seed % 5 == 0 else 5
    return [random.randint(0, ROWS, random.randint(0, most)) for _ in range(random.randint(1, 6))]


@pytest.mark.parametrize("combiner", sorted(COMBINE))
@pytest.mark.parametrize("seed", SEEDS)
def test_ragged_and_sparse_ids(seed: int, combiner: str) -> None:
    ids = examples(seed)
    flat = np.concatenate(ids).astype(INTEGERS[seed % len(INTEGERS)])
    places = np.array([(e, p) for e, one in enumerate(ids) for p in range(len(one))], np.int64).reshape([-1, 2])

    def ragged(table: embedding.Table) -> Any:
        return embedding.lookup(table, tf.RaggedTensor.from_row_lengths(flat, [len(one) for one in ids]), combiner)

    def sparse(table: embedding.Table) -> Any:
        return embedding.lookup(table, tf.SparseTensor(places, flat, [len(ids), 5]), combiner)

    for make in (ragged, sparse):
        found, rows = value(make)
        np.testing.assert_allclose(found, combined(rows, ids, combiner), rtol=1e-6, atol=1e-6)


def weighted(rows: np.ndarray, ids: List[Any], weights: List[Any], combiner: str) -> np.ndarray:
    """The same, of rows that are multiplied by weights before."""
    divisors = {"sum": lambda given: 1.0, "mean": np.sum, "sqrtn": lambda given: np.sqrt(np.sum(given**2))}
    found = np.zeros([len(ids), WIDTH])
    for example, (one, given) in enumerate(zip(ids, weights)):
        if len(one):
            found[example] = (rows[one] * given[:, None]).sum(0) / divisors[combiner](given)
    return found


def as_given(kind: str, values: List[Any], filler: Any) -> Any:
    """The values of the examples in a tensor of this kind; a dense one is filled up."""
    flat = np.concatenate(values)
    if kind == "ragged":
        return tf.RaggedTensor.from_row_lengths(flat, [len(one) for one in values])
    if kind == "sparse":
        places = [(example, place) for example, one in enumerate(values) for place in range(len(one))]
        return tf.SparseTensor(np.array(places, np.int64).reshape([-1, 2]), flat, [len(values), 9])
    most = max(map(len, values))
    return tf.constant(np.array([np.append(one, [filler] * (most - len(one))) for one in values], flat.dtype))


@pytest.mark.parametrize("kind", ["ragged", "sparse", "dense"])
@pytest.mark.parametrize("combiner", ["mean", "sqrtn", "sum"])
@pytest.mark.parametrize("seed", few(range(4), [1]))
def test_rows_are_multiplied_by_their_weights_and_padding_counts_for_nothing(
    seed: int, combiner: str, kind: str
) -> None:
    random = np.random.RandomState(seed)
    ids = [*examples(seed), np.array([seed])]
    weights = [random.uniform(0.1, 2.0, len(one)).astype(np.float32) for one in ids]
    padded = [np.append(one, [-7] * random.randint(0, 3)).astype(np.int64) for one in ids]
    given = [np.append(one, [5.0] * (len(two) - len(one))).astype(np.float32) for one, two in zip(weights, padded)]

    def make(table: embedding.Table) -> Any:
        of_ids, of_weights = as_given(kind, padded, -7), as_given(kind, given, 3.0)
        return embedding.lookup(table, of_ids, combiner, weights=of_weights, padding=-7)

    found, rows = value(make)
    np.testing.assert_allclose(found, weighted(rows, ids, weights, combiner), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("combiner", ["mean", "sqrtn", "sum"])
@pytest.mark.parametrize("has_weights", [False, True])
def test_sparse_ids_give_what_tensorflow_s_own_lookup_gives(combiner: str, has_weights: bool) -> None:
    random = np.random.RandomState(7)
    ids = [random.randint(0, ROWS, number) for number in (1, 4, 2, 3)]
    factors = [random.uniform(-1.0, 2.0, len(one)).astype(np.float32) for one in ids]

    def given() -> Any:
        return as_given("sparse", ids, 0), as_given("sparse", factors, 0.0) if has_weights else None

    def make(table: embedding.Table) -> Any:
        of_ids, weights = given()
        return embedding.lookup(table, of_ids, combiner, weights=weights)

    found, rows = value(make)
    with tf.Graph().as_default(), tf.Session() as session:
        own = session.run(tf.nn.embedding_lookup_sparse(tf.constant(rows), *given(), combiner=combiner))
    np.testing.assert_allclose(found, own, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["ragged", "sparse", "dense"])
@pytest.mark.parametrize("combiner", sorted(COMBINE))
def test_padding_is_no_id_of_an_example(combiner: str, kind: str) -> None:
    ids = [np.array(one, np.int64) for one in ([3, 5], [], [4, 4, 1], [])]
    padded = [np.array(one, np.int64) for one in ([0, 3, 5], [0], [4, 4, 1], [0, 0])]
    found, rows = value(lambda table: embedding.lookup(table, as_given(kind, padded, 0), combiner, padding=0))
    np.testing.assert_allclose(found, combined(rows, ids, combiner), rtol=1e-6)


def test_the_rows_of_a_sequence_are_ragged_and_padding_is_zeros() -> None:
    def whole(table: embedding.Table, **more: Any) -> Any:
        found = embedding.lookup(table, tf.ragged.constant([[3, 9], [], [4]]), **more)
        assert found.shape.as_list() == [3, None, WIDTH]
        return tf.ensure_shape(found.to_tensor(default_value=2.0), [3, 2, WIDTH])

    found, rows = value(whole)
    twos = np.full(WIDTH, 2.0)
    np.testing.assert_array_equal(found, [[rows[3], rows[9]], [twos, twos], [rows[4], twos]])
    found, rows = value(lambda table: whole(table, padding=9))
    np.testing.assert_array_equal(found, [[rows[3], 0 * twos], [twos, twos], [rows[4], twos]])


def test_the_rows_of_a_sequence_of_pairs_are_pairs_of_rows() -> None:
    def make(table: embedding.Table) -> Any:
        pairs = tf.ragged.constant([[[3, 9], [1, 2]], [[4, 4]]], inner_shape=(2,))
        return tf.ensure_shape(embedding.lookup(table, pairs).to_tensor(), [2, 2, 2, WIDTH])

    found, rows = value(make)
    np.testing.assert_array_equal(found, [[rows[[3, 9]], rows[[1, 2]]], [rows[[4, 4]], 0 * rows[:2]]])


@pytest.mark.parametrize(("ids", "padding"), [(np.array([[7, 0], [0, 2]]), 0), (np.array([["b", ""], ["", "c"]]), "")])
def test_padding_makes_no_lookup_and_no_gradient(ids: np.ndarray, padding: Any) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        found = embedding.lookup(embedding.table("table", WIDTH), tf.constant(ids), padding=padding)
        (each,) = lookups(graph)
        gradient = tf.gradients(found, each.variable)[0]
        session.run(each.variable.initializer)
        asked, numbers = session.run([each.ids, each.numbers], {each.numbers: [7, 2]})
        values, indices = session.run([gradient.values, gradient.indices], {each.numbers: [7, 2]})
        shown = session.run(found, {each.numbers: [7, 2]})
    assert asked.shape == (2,) and list(indices) == list(numbers)
    np.testing.assert_array_equal(values, np.ones([2, WIDTH]))
    assert shown.shape == (2, 2, WIDTH) and not shown[0, 1].any()


@pytest.mark.parametrize("kind", [np.uint8, np.uint32, np.uint64, np.int16])
def test_the_largest_id_of_a_type_can_be_its_padding(kind: Any) -> None:
    most = int(np.iinfo(kind).max)
    found, rows = value(lambda table: embedding.lookup(table, tf.constant(np.array([3, most], kind)), padding=most))
    np.testing.assert_array_equal(found, [rows[3], np.zeros(WIDTH)])


@pytest.mark.parametrize(
    ("ids", "known", "given"), [([2, 2], [None, 2], [[1.0, 1.0]]), ([2, 2], None, [1.0, 1.0]), ([3], None, 1.0)]
)
def test_weights_of_other_axes_end_the_step(ids: List[int], known: Any, given: Any) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        weights = tf.placeholder(tf.float32, known)
        found = embedding.lookup(embedding.table("table", WIDTH), tf.ones(ids, tf.int64), "sum", weights=weights)
        (each,) = lookups(graph)
        session.run(each.variable.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected a weight for each id"):
            session.run(found, {each.numbers: [1] * int(np.prod(ids)), weights: given})


@pytest.mark.parametrize("combiner", ["mean", "sqrtn", "sum"])
def test_gradients_of_weights_are_finite_where_all_of_an_example_are_0(combiner: str) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        weights = tf.constant([[0.0, 0.0], [1.0, 2.0]])
        found = embedding.lookup(embedding.table("table", WIDTH), tf.ones([2, 2], tf.int64), combiner, weights=weights)
        (each,) = lookups(graph)
        session.run(tf.assign(each.variable, np.ones([ROWS, WIDTH], np.float32)).op)
        of_weights, of_rows = tf.gradients(found, [weights, each.variable])
        values = session.run([found, of_weights, of_rows.values], {each.numbers: [1, 2, 3, 4]})
    assert all(np.isfinite(one).all() for one in values) and (values[0][0] == 0).all()


def test_equal_maxima_share_the_gradient_and_others_get_none() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        found = embedding.lookup(embedding.table("table", 1), tf.ragged.constant([[1, 2, 3], [], [4]]), "max")
        (each,) = lookups(graph)
        gradient = tf.gradients(found, each.variable)[0]
        rows = np.zeros([ROWS, 1], np.float32)
        rows[[1, 2, 3, 4]] = [[5.0], [5.0], [1.0], [-2.0]]
        session.run(tf.assign(each.variable, rows).op)
        values, shown = session.run([gradient.values, found], {each.numbers: [1, 2, 3, 4]})
    np.testing.assert_array_equal(values, [[0.5], [0.5], [0.0], [1.0]])
    np.testing.assert_array_equal(shown, [[5.0], [0.0], [-2.0]])


@pytest.mark.parametrize("kind", ["ragged", "sparse", "dense"])
def test_weights_in_other_places_than_the_ids_end_the_step(kind: str) -> None:
    def make(ids: List[Any], weights: List[Any]) -> None:
        with tf.Graph().as_default() as graph, tf.Session() as session:
            of_ids, of_weights = as_given(kind, ids, 0), as_given(kind, weights, 0.0)
            if kind == "dense":
                of_weights = tf.placeholder_with_default(of_weights, [None, None])
            found = embedding.lookup(embedding.table("table", WIDTH), of_ids, "sum", weights=of_weights)
            (each,) = lookups(graph)
            session.run(each.variable.initializer)
            session.run(found, {each.numbers: session.run(each.ids)})

    ids = [np.array([1, 2]), np.array([3])]
    make(ids, [np.array([1.0, 2.0]), np.array([3.0])])
    others = [np.array([1.0]), np.array([2.0, 3.0])] if kind != "dense" else [np.array([1.0, 2.0, 3.0])]
    for wrong in (others, [np.array([1.0, 2.0]), np.array([3.0]), np.array([4.0])]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected a weight for each id"):
            make(ids, wrong)


@pytest.mark.parametrize(
    ("ids", "more", "message"),
    [
        (lambda: tf.constant([[1]]), {"weights": [[1.0]]}, "a combiner for weights, sum, mean or sqrtn, found None"),
        (lambda: tf.constant([[1]]), {"weights": [[1.0]], "combiner": "max"}, "for weights, .* found 'max'"),
        (lambda: tf.ragged.constant([[1]]), {"weights": [[1.0]], "combiner": "sum"}, "like the ids, a RaggedTensor"),
        (lambda: tf.sparse.from_dense([[1]]), {"weights": [[1.0]], "combiner": "sum"}, "like the ids, a SparseTensor"),
        (lambda: tf.constant([[1]]), {"padding": ""}, "a padding like the ids, an integer, found ''"),
        (lambda: tf.constant([[1]], tf.uint8), {"padding": -1}, "a padding from 0 to 255, like uint8, found -1"),
        (
            lambda: tf.constant([1, 2]),
            {"weights": 2.0, "combiner": "sum"},
            r"weights of the shape of the ids, \(2,\), found \(\)",
        ),
        (
            lambda: tf.ones([2, 2], tf.int64),
            {"weights": [1.0, 2.0], "combiner": "sum"},
            r"weights of the shape of the ids, \(2, 2\), found \(2,\)",
        ),
        (lambda: tf.constant([["a"]]), {"padding": 0}, "a padding like the ids, a string, found 0"),
    ],
)
def test_other_weights_and_paddings_are_refused(ids: Callable[[], Any], more: Any, message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        embedding.lookup(embedding.table("table", WIDTH), ids(), **more)


@pytest.mark.parametrize("combiner", ["mean", "sqrtn", "sum"])
def test_gradients_of_examples_without_ids_are_finite(combiner: str) -> None:
    with tf.Graph().as_default():
        ids = tf.RaggedTensor.from_row_lengths(np.array([3, 4, 3]), [0, 2, 0, 1])
        found = embedding.lookup(embedding.table("table", WIDTH), ids, combiner)
        (each,) = lookups(tf.get_default_graph())
        gradient = tf.gradients(found, each.variable)[0]
        with tf.Session() as session:
            part = {"sum": 1.0, "mean": 0.5, "sqrtn": 0.5**0.5}[combiner]
            session.run(each.variable.initializer)
            values = session.run(gradient.values)
    np.testing.assert_allclose(values, np.repeat([[part], [part], [1.0]], WIDTH, 1), rtol=1e-6)


@pytest.mark.parametrize(
    "ids, expected",
    [
        ([-(1 << 63), (1 << 63) - 1, -1], [-(1 << 63), (1 << 63) - 1, -1]),
        (np.array([(1 << 64) - 1, 1 << 63], np.uint64), [-1, -(1 << 63)]),
        (np.array([(1 << 32) - 1], np.uint32), [(1 << 32) - 1]),
        (np.array([-128], np.int8), [-128]),
    ],
)
def test_integers_keep_their_bits(ids: Any, expected: List[int]) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        embedding.lookup(embedding.table("table", WIDTH), ids)
        assert session.run(lookups(graph)[0].ids).tolist() == expected


def test_a_string_is_one_id_wherever_it_comes() -> None:
    words = np.array(["", "é", "a\0b", "x" * 1000, "a"])
    with tf.Graph().as_default() as graph, tf.Session() as session:
        table = embedding.table("table", WIDTH)
        embedding.lookup(table, words)
        embedding.lookup(table, tf.SparseTensor([[0, 0], [1, 3]], words[[1, 4]], [2, 4]), "sum")
        embedding.lookup(table, tf.constant(words[::-1].copy()[:, np.newaxis]))
        dense, sparse, turned = (session.run(each.ids).tolist() for each in lookups(graph))
    assert len(set(dense)) == len(words) and min(dense) >= 0
    assert turned == dense[::-1] and sparse == [dense[1], dense[4]]


def test_what_needs_rows_needs_their_ids_also_those_that_other_rows_make() -> None:
    with tf.Graph().as_default() as graph:
        table = embedding.table("table", WIDTH)
        top = tf.argmax(embedding.lookup(table, tf.placeholder(tf.int64, [4])), 1)
        loss = embedding.lookup(table, top)
        first, second = lookups(graph)
    assert {first.rows, second.rows, first.ids.op} <= ancestors([loss])


def test_shapes_that_are_not_known_before_a_step() -> None:
    with tf.Graph().as_default():
        table = embedding.table("table", WIDTH)
        shapes = {None: None, (None,): [None, WIDTH], (4, None): [4, None, WIDTH], (2, 3): [2, 3, WIDTH]}
        for given, expected in shapes.items():
            found = embedding.lookup(table, tf.placeholder(tf.int64, given)).shape
            assert (None if found.ndims is None else found.as_list()) == expected
        for combiner in sorted(COMBINE):
            found = embedding.lookup(table, tf.placeholder(tf.int64, [4, None]), combiner)
            assert found.shape.as_list() == [4, WIDTH]
            found = embedding.lookup(table, tf.sparse_placeholder(tf.int64, [4, 7]), combiner)
            assert found.shape.as_list()[1:] == [WIDTH]


@pytest.mark.parametrize(
    "ids, combiner, message",
    [
        (lambda: tf.constant([1.0]), None, "integers or strings, found float32"),
        (lambda: tf.constant([True]), None, "integers or strings, found bool"),
        (lambda: tf.constant([[1]]), "last", "a combiner, sum, mean, sqrtn or max, found 'last'"),
        (lambda: tf.constant(1), "sum", "ids with an axis to combine over"),
        (lambda: tf.sparse.from_dense([[1]]), None, "a combiner for sparse ids, sum, mean, sqrtn or max, found None"),
        (lambda: tf.sparse.from_dense([[[1]]]), "sum", r"sparse or ragged ids of shape \[batch, any\]"),
        (lambda: tf.sparse.from_dense([1]), "sum", r"sparse or ragged ids of shape \[batch, any\]"),
        (lambda: tf.ragged.constant([[[1]], []]), "sum", r"sparse or ragged ids of shape \[batch, any\]"),
        (
            lambda: tf.ragged.constant([[[1, 2]], []], inner_shape=(2,)),
            "sum",
            r"sparse or ragged ids of shape \[batch, any\]",
        ),
    ],
)
def test_other_ids_are_refused(ids: Callable[[], Any], combiner: Any, message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        embedding.lookup(embedding.table("table", WIDTH), ids(), combiner)


def _in_loop(table: embedding.Table) -> Any:
    return tf.map_fn(lambda one: embedding.lookup(table, one), tf.constant([1, 2]), tf.float32)


def _in_branch(table: embedding.Table) -> Any:
    no_rows = tf.zeros([1, WIDTH])
    return tf.cond(tf.equal(tf.placeholder(tf.int32, []), 1), lambda: embedding.lookup(table, [1]), lambda: no_rows)


def _in_function(table: embedding.Table) -> Any:
    return tf.function(lambda: embedding.lookup(table, [1]))()


def _in_input(table: embedding.Table) -> Any:
    data = tf.data.Dataset.from_tensor_slices([[1]]).map(lambda one: embedding.lookup(table, one))
    return tf.data.make_one_shot_iterator(data).get_next()


@pytest.mark.parametrize("make", [_in_loop, _in_branch, _in_function, _in_input])
@pytest.mark.parametrize("new_control_flow", [False, True])
def test_lookups_in_loops_branches_and_functions_are_refused(make: Callable[..., Any], new_control_flow: bool) -> None:
    (tf.enable_control_flow_v2 if new_control_flow else tf.disable_control_flow_v2)()
    try:
        with tf.Graph().as_default(), pytest.raises(ValueError, match="outside of loops, branches and functions"):
            make(embedding.table("table", WIDTH))
    finally:
        tf.disable_control_flow_v2()


def test_two_tables_of_one_name_are_refused() -> None:
    with tf.Graph().as_default():
        embedding.lookup(embedding.table("table", WIDTH), [1])
        embedding.lookup(embedding.table("table", WIDTH), [1])
        with pytest.raises(ValueError, match="expected one table of this name"):
            embedding.lookup(embedding.table("table", WIDTH, initializer=tf.zeros_initializer()), [1])
        with pytest.raises(ValueError, match="expected one table of this name"):
            embedding.lookup(embedding.table("table", WIDTH + 1), [1])


@pytest.mark.parametrize("name", ["", None, 3, "a b", "/a", "a:0"])
def test_names_that_no_checkpoint_could_have_are_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="expected a name"):
        embedding.table(name, WIDTH)


@pytest.mark.parametrize("width", [0, -1, 2.0, "3", None])
def test_widths_that_are_none_are_refused(width: Any) -> None:
    with pytest.raises(ValueError, match="expected a width of at least 1"):
        embedding.table("table", width)


class Own(tf.zeros_initializer):  # type: ignore[misc]
    """An author's own: what it gives is not known."""


@pytest.mark.parametrize(
    "initializer",
    ["zeroes", "glorot_uniform", 1.0, Own(), Own, tf.constant_initializer([1.0]), tf.truncated_normal_initializer()],
)
def test_other_initializers_are_refused(initializer: Any) -> None:
    with pytest.raises(ValueError, match="expected a zeros, ones, constant, random_uniform or random_normal"):
        embedding.table("table", WIDTH, initializer=initializer)


@pytest.mark.parametrize(
    "given, expected",
    [
        (tf.zeros_initializer, ("constant", 0.0, 0.0, 0)),
        (tf.ones_initializer(), ("constant", 1.0, 0.0, 0)),
        (tf.constant_initializer(2), ("constant", 2.0, 0.0, 0)),
        (tf.constant_initializer(np.float32(0.5)), ("constant", 0.5, 0.0, 0)),
        (tf.random_uniform_initializer(-1, 2, seed=7), ("uniform", -1.0, 2.0, 7)),
        (tf.random_normal_initializer(1.0, 0.5), ("normal", 1.0, 0.5, 0)),
        (None, ("normal", 0.0, WIDTH**-0.5, 0)),
        ("zeros", ("constant", 0.0, 0.0, 0)),
        ("uniform", ("uniform", -0.05, 0.05, 0)),
        ("normal", ("normal", 0.0, 0.05, 0)),
        (tf.keras.initializers.RandomUniform(-2.0, 3.0, seed=5), ("uniform", -2.0, 3.0, 5)),
        (tf.keras.initializers.RandomNormal(1.0, 2.0), ("normal", 1.0, 2.0, 0)),
        (tf.keras.initializers.Constant(4.0), ("constant", 4.0, 0.0, 0)),
        (tf.keras.initializers.Ones(), ("constant", 1.0, 0.0, 0)),
    ],
)
def test_initializers(given: Any, expected: Any) -> None:
    assert embedding.table("table", WIDTH, initializer=given).initializer == expected
