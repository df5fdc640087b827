"""Variables go to parameter servers by bytes, and stay with their optimizer's slots."""

from typing import Any, Dict, List

import pytest

from cluster.runtime.devices import worker_device
from cluster.runtime.tf_compat import tf
from cluster.variables.placement import Placement, assign, bytes_per_server, device_setter, imbalance

FLOAT = 4


def conv(name: str, kernel: int, inputs: int, outputs: int) -> Dict[str, int]:
    return {f"{name}/weights": kernel * kernel * inputs * outputs * FLOAT, f"{name}/bias": outputs * FLOAT}


def vgg16() -> Dict[str, int]:
    sizes: Dict[str, int] = {}
    channels = [3, 64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512]
    for index, (inputs, outputs) in enumerate(zip(channels, channels[1:])):
        sizes.update(conv(f"conv{index}", 3, inputs, outputs))
    for index, (inputs, outputs) in enumerate([(25088, 4096), (4096, 4096), (4096, 1000)]):
        sizes.update(conv(f"fc{index}", 1, inputs, outputs))
    return sizes


def resnet50() -> Dict[str, int]:
    sizes = conv("first", 7, 3, 64)
    inputs = 64
    for stage, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for block in range(blocks):
            name = f"stage{stage}/block{block}"
            if block == 0:
                sizes.update(conv(f"{name}/shortcut", 1, inputs, 4 * width))
            sizes.update(conv(f"{name}/a", 1, inputs, width))
            sizes.update(conv(f"{name}/b", 3, width, width))
            sizes.update(conv(f"{name}/c", 1, width, 4 * width))
            inputs = 4 * width
    return {**sizes, **conv("fc", 1, 2048, 1000)}


def balance(sizes: Dict[str, int], num_ps: int) -> float:
    return imbalance(bytes_per_server(sizes, assign(sizes, num_ps), num_ps))


def round_robin(sizes: Dict[str, int], num_ps: int) -> float:
    return imbalance(bytes_per_server(sizes, {name: index % num_ps for index, name in enumerate(sizes)}, num_ps))


def test_the_fullest_server_holds_no_more_than_a_hundredth_over_the_mean_for_resnet_50_on_5() -> None:
    assert round_robin(resnet50(), 5) > 1.5
    assert balance(resnet50(), 5) < 1.01


def test_vgg_16_uncut_on_4_is_as_balanced_as_its_one_huge_variable_allows() -> None:
    sizes = vgg16()
    bound = max(sizes.values()) * 4 / sum(sizes.values())
    assert balance(sizes, 4) == pytest.approx(bound) == pytest.approx(2.97, abs=0.01)
    assert round_robin(sizes, 4) > balance(sizes, 4)


def test_equal_sizes_are_dealt_by_name_so_that_every_worker_finds_the_same_placement() -> None:
    forwards, backwards = assign({"a": 8, "b": 8, "c": 8}, 2), assign({"c": 8, "b": 8, "a": 8}, 2)
    assert forwards == backwards == {"a": 0, "b": 1, "c": 0}


def test_no_bytes_at_all_count_as_balanced() -> None:
    assert imbalance(bytes_per_server({}, assign({}, 3), 3)) == 1.0


def model() -> List[Any]:
    """Created smallest first, the order in which dealing them out in turn is at its worst."""
    return [tf.get_variable(name, [size]) for name, size in [("a", 1), ("b", 10), ("c", 99), ("d", 100)]]


def placed(optimizer: Any, unit: str = "CPU:0") -> Dict[str, str]:
    placement = Placement(2, {"a": 4, "b": 40, "c": 396, "d": 400})
    with tf.Graph().as_default():
        with tf.device(device_setter(placement, worker_device("worker", 1, unit))):
            variables = model()
            loss = tf.add_n([tf.reduce_sum(variable) for variable in variables], name="loss")
            optimizer().minimize(loss)
        return {**{v.op.name: v.device for v in tf.global_variables()}, "loss": loss.device}


def test_variables_sit_on_the_servers_cpu_by_size_and_the_rest_on_the_workers_device() -> None:
    devices = placed(lambda: tf.train.GradientDescentOptimizer(0.1), "GPU:3")
    ps = "/job:ps/task:{}/device:CPU:0".format
    assert devices == {"d": ps(0), "c": ps(1), "b": ps(1), "a": ps(0), "loss": "/job:worker/task:1/device:GPU:3"}


def test_optimizer_slots_sit_with_their_variable() -> None:
    devices = placed(lambda: tf.train.AdamOptimizer(0.1))
    for name in "abcd":
        assert devices[f"{name}/Adam"] == devices[f"{name}/Adam_1"] == devices[name]


def test_a_variable_that_was_not_measured_goes_to_the_emptier_server() -> None:
    placement = Placement(2, {"w": 400})
    with tf.Graph().as_default(), tf.device(device_setter(placement, worker_device("worker", 0))):
        late = tf.get_variable("late", [7])
    assert "/task:1/" in late.device
    assert placement.bytes_per_server() == [400, 28]
