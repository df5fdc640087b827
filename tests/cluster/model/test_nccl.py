"""Gradients of towers are added up on their GPUs: who takes part, that nobody waits for ever, and what is refused.

No GPU is needed: the graphs are for GPUs, and are looked at, or run with processors in the place of GPUs and a plain
sum in the place of NCCL's.
"""

from typing import Any, Dict, List, Sequence, Set, Tuple

import numpy as np
import pytest

from cluster.errors import TaskError
from cluster.job import Job
from cluster.model import nccl
from cluster.model.device_pool import Member, as_client
from cluster.model.nccl import add_gradients_on_gpus, has_kernel, refuse_without_nccl
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.towers import add_gradients
from cluster.training.builder import Builder
from jobs import digits

TASK = Task("worker", 0, {"ps": ["a:1"], "worker": ["b:1", "c:1"]})
GPUS = [f"/device:GPU:{index}" for index in range(3)]
Groups = Dict[bytes, List[Any]]


@pytest.fixture
def graph() -> Any:
    with tf.Graph().as_default() as graph, tf.device("/device:CPU:0"):
        yield graph


def parts(number: int, dtype: Any = tf.float32) -> Tuple[List[Any], List[Any]]:
    """Gradients of two variables, other ones for each part."""
    variables = [tf.get_variable(name, [2], dtype) for name in "vw"]
    random = np.random.RandomState(number)
    return variables, [[(tf.constant(random.rand(2), dtype), each) for each in variables] for _ in range(number)]


def participants(graph: Any) -> Groups:
    """The operations of each sum."""
    found: Groups = {}
    for op in graph.get_operations():
        if op.type == "NcclAllReduce":
            found.setdefault(op.get_attr("shared_name"), []).append(op)
    return found


def run_on_processors(graph: Any, tensors: Sequence[Any]) -> List[Any]:
    """The values of tensors of a graph for GPUs: each participant of a sum adds up what all of them have."""
    definition = graph.as_graph_def()
    inputs: Dict[bytes, List[str]] = {}
    for node in definition.node:
        node.device = node.device.replace("GPU", "CPU")
        if node.op == "NcclAllReduce":
            inputs.setdefault(node.attr["shared_name"].s, []).append(node.input[0])
    for node in definition.node:
        if node.op == "NcclAllReduce":
            ready, all_of_them = node.input[1:], inputs[node.attr["shared_name"].s]
            node.op, node.input[:] = "AddN", [*all_of_them, *ready]
            node.attr["N"].i = node.attr["num_devices"].i
            for key in ("num_devices", "shared_name", "reduction"):
                del node.attr[key]
    with tf.Graph().as_default() as replaced:
        found = tf.import_graph_def(definition, return_elements=[each.name for each in tensors])
        with tf.Session(graph=replaced, config=tf.ConfigProto(device_count={"CPU": len(GPUS)})) as session:
            values: List[Any] = session.run(found)
    return values


def before(op: Any) -> Set[Any]:
    """All operations that run before ``op``."""
    found: Set[Any] = set()
    left = [op]
    while left:
        each = left.pop()
        new = {*(tensor.op for tensor in each.inputs), *each.control_inputs} - found
        found |= new
        left += new
    return found


def test_each_tower_takes_part_in_the_sum_of_each_variable_on_its_own_gpu(graph: Any) -> None:
    add_gradients_on_gpus(parts(3)[1], GPUS)
    found = participants(graph)
    assert sorted(found) == [b"tower_sum/v", b"tower_sum/w"]
    for group in found.values():
        assert [op.device for op in group] == GPUS
        assert {(op.get_attr("num_devices"), op.get_attr("reduction")) for op in group} == {(3, b"sum")}


@pytest.mark.parametrize("taken", [0, 1])
def test_who_takes_one_sum_lets_all_its_participants_run(graph: Any, taken: int) -> None:
    total, _ = add_gradients_on_gpus(parts(3)[1], GPUS)[taken]
    pruned = tf.graph_util.extract_sub_graph(graph.as_graph_def(), [total.op.name])
    found = [node.device for node in pruned.node if node.op == "NcclAllReduce"]
    assert sorted(found) == GPUS
    assert total.device == "/device:CPU:0"


def test_nobody_begins_to_wait_for_the_others_before_every_tower_has_its_gradient(graph: Any) -> None:
    grads = parts(3)[1]
    add_gradients_on_gpus(grads, GPUS)
    needed = {grad.op for tower in grads for grad, variable in tower if variable.op.name == "w"}
    assert len(needed) == 3
    assert all(needed <= before(op) for op in participants(graph)[b"tower_sum/w"])


@pytest.mark.parametrize("dtype", [tf.float16, tf.float32, tf.float64])
@pytest.mark.parametrize("number", [3, 6])
def test_the_sum_is_that_of_add_gradients_however_many_parts_a_tower_has(graph: Any, number: int, dtype: Any) -> None:
    variables, grads = parts(number, dtype)
    ours, theirs = add_gradients_on_gpus(grads, GPUS), add_gradients(grads)
    assert [variable for _, variable in ours] == variables
    values = run_on_processors(graph, [grad for grad, _ in [*ours, *theirs]])
    for own, other in zip(values[:2], values[2:]):
        np.testing.assert_allclose(own, other, rtol=4 * np.finfo(other.dtype).eps)


def test_a_tower_adds_up_its_own_parts_on_its_gpu_and_gives_one_gradient(graph: Any) -> None:
    add_gradients_on_gpus(parts(6)[1], GPUS)
    for group in participants(graph).values():
        assert [op.inputs[0].op.device for op in group] == GPUS
        assert {len(op.inputs[0].op.inputs) for op in group} == {2}


def test_rows_missing_gradients_and_types_that_nccl_does_not_know_are_added_up_on_the_worker(graph: Any) -> None:
    table, other, short = tf.get_variable("t", [4, 1]), tf.get_variable("o", [1]), tf.get_variable("s", [1])
    rows = [tf.IndexedSlices(tf.constant([[2.0], [4.0]]), tf.constant([i, 3]), tf.constant([4, 1])) for i in (0, 1)]
    narrow = tf.cast(tf.constant([1.0]), tf.bfloat16)
    grads = [[(each, table), (None, other), (narrow, short)] for each in rows]
    (total, _), (nothing, unused), (sixteen, _) = add_gradients_on_gpus(grads, GPUS[:2])
    assert not participants(graph)
    assert isinstance(total, tf.IndexedSlices) and nothing is None and unused is other
    values = run_on_processors(graph, [tf.convert_to_tensor(total), tf.cast(sixteen, tf.float32)])
    assert values[0].ravel().tolist() == [2, 2, 0, 8] and values[1].tolist() == [2]


@pytest.mark.parametrize(
    "settings",
    [
        {"sync": "overlapped"},
        {"sync": "plain"},
        {"sync": "stock"},
        {"mode": "async"},
        {"sync": "overlapped", "stages": 2},
        {"sync": "overlapped", "accumulate": 2, "on_nan": "ignore"},
        {"clip_norm": 1.0},
    ],
    ids=str,
)
def test_in_a_worker_s_graph_nothing_but_the_whole_sum_takes_what_a_participant_gives(settings: Dict[str, Any]) -> None:
    train = Train(tower_batch_size=2, towers=2, tower_sum="nccl", **settings)
    devices = [f"GPU:{tower * train.stages}" for tower in range(2)]
    pool = [Member(Task("worker", 0, TASK.cluster, 4 * train.accumulate), devices)]
    args = {"hidden": 8}
    replica = Builder(Job.from_module(digits).with_args(args), as_client(TASK, pool), train, args, pool).build()
    found = participants(replica.graph)
    assert len(found) == len(replica.graph.get_collection("trainable_variables"))
    for group in found.values():
        assert [op.device for op in group] == [f"/job:worker/task:0/device:{device}" for device in devices]
        (total,) = group[0].outputs[0].consumers()
        assert not group[1].outputs[0].consumers()
        assert set(group) <= {*total.control_inputs, group[0]}
        assert total.device == "/job:worker/task:0/device:CPU:0"


def test_towers_on_gpus_are_not_refused_where_tensorflow_has_the_operation() -> None:
    assert has_kernel("NcclAllReduce") and has_kernel("MatMul")
    refuse_without_nccl(["GPU:0", "GPU:1"])
    refuse_without_nccl(["GPU:0", "GPU:2"])


@pytest.mark.parametrize(
    ("devices", "found"), [(["CPU:0", "CPU:1"], "2, 0 on a GPU"), (["GPU:0"], "1, 1 on a GPU"), (["CPU:0"], "1, 0 on")]
)
def test_towers_on_processors_and_a_single_one_are_refused(devices: List[str], found: str) -> None:
    expected = "train.tower_sum: expected at least 2 towers, each on a GPU of its own for nccl, found"
    with pytest.raises(TaskError, match=f"{expected} {found}.*leave tower_sum out, or set worker"):
        refuse_without_nccl(devices)


def test_a_tensorflow_without_the_operation_for_gpus_is_refused_by_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not has_kernel("NoSuchOperation") and not has_kernel("DecodeJpeg")
    monkeypatch.setattr(nccl, "_OPERATION", "DecodeJpeg")
    expected = f"expected TensorFlow with DecodeJpeg for GPUs for nccl, found {tf.__version__} without it"
    with pytest.raises(TaskError, match=expected):
        refuse_without_nccl(["GPU:0", "GPU:1"])
