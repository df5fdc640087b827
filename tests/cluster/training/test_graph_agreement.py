"""Workers that have built different models find it out before the first step."""

from pathlib import Path
from typing import Any, Iterator, List

import pytest

from cluster.errors import TrainingError
from cluster.runtime.tf_compat import tf
from cluster.task import Task
from cluster.training.joining import GraphAgreement, digest_of_listing, first_difference, listing
from cluster.variables.layout import Bucket
from tests.support.training.processes import Cluster

CLUSTER = {"ps": ["a:1"], "worker": ["b:1", "c:1"]}


@pytest.fixture
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def variables() -> List[Any]:
    with tf.device("/job:ps/task:1"):
        return [tf.get_variable("b", [2, 3]), tf.get_variable("a", [], tf.int64)]


def test_a_listing_names_the_runtime_then_each_variable_with_type_shape_and_device(graph: Any) -> None:
    assert listing(variables()) == [
        f"TensorFlow {tf.__version__}",
        "a int64[] on /job:ps/task:1",
        "b float32[2x3] on /job:ps/task:1",
    ]


def test_a_listing_does_not_depend_on_the_order_in_which_variables_were_made(graph: Any) -> None:
    made = variables()
    assert digest_of_listing(listing(made)) == digest_of_listing(listing(made[::-1]))
    assert digest_of_listing(listing(made)) != digest_of_listing(listing(made[:1]))


def test_a_listing_tells_what_travels_together_as_that_depends_on_the_order(graph: Any) -> None:
    assert listing([], [Bucket(1, 0, ("b", "a"))])[1:] == ["bucket_0_of_ps_1 of b a"]


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (["a", "b"], ["a", "b"], None),
        (["a", "b"], ["a", "c"], ("b", "c")),
        (["a"], ["a", "c"], ("(nothing more)", "c")),
        (["a", "c"], ["a"], ("c", "(nothing more)")),
    ],
)
def test_the_first_line_that_differs_is_found_on_both_sides(ours: Any, theirs: Any, expected: Any) -> None:
    assert first_difference(ours, theirs) == expected


def agreement(index: int, shape: List[int]) -> Any:
    """The agreement of one worker whose model has one variable, with the graph it is in."""
    with tf.Graph().as_default() as graph, tf.device("/job:ps/task:0/device:CPU:0"):
        return GraphAgreement(Task("worker", index, CLUSTER), [tf.get_variable("w", shape)]), graph


def test_workers_agree_again_after_either_has_started_again_and_a_difference_is_told() -> None:
    server = tf.train.Server({"ps": ["127.0.0.1:0"]})

    def settle(index: int, shape: List[int]) -> None:
        made, graph = agreement(index, shape)
        with tf.Session(server.target, graph=graph) as session:
            made.settle(session)

    for index in (0, 1, 0, 1, 1):
        settle(index, [3])
    with pytest.raises(TrainingError, match=r"expected 'w float32\[3\] on .*found 'w float32\[4\] on"):
        settle(1, [4])


def test_a_worker_with_another_model_ends_before_the_first_step_and_tells_both_lines(tmp_path: Path) -> None:
    train = {"batch_size": 4}
    with Cluster(tmp_path, "digits") as cluster:
        cluster.start("ps", 0, train)
        cluster.start("worker", 0, train, {"hidden": 8})
        cluster.start("worker", 1, train, {"hidden": 9})
        assert cluster.exit_code("worker", 1) == 1
        outcome = cluster.outcome("worker", 1)
        assert outcome is not None and not outcome.retry and outcome.step is None
        assert "expected 'hidden/bias float32[8] on /job:ps" in str(outcome.cause)
        assert "found 'hidden/bias float32[9] on /job:ps" in str(outcome.cause)
        assert cluster.step() == -1
