"""A distributed run beside one process: equal to the bit, or the first step and variable that differ."""

import threading
from pathlib import Path
from types import ModuleType
from typing import Any, Dict

import pytest

from cluster.model.shares import Parts
from cluster.runtime.tf_compat import tf
from cluster.steps.accumulators import Separate
from tests.cluster.verify.runs import cause, compared, ended
from tests.support.training.jobs import verified

NIGHTLY: Dict[str, Any] = {"marks": pytest.mark.nightly}
WIDE = 30_000  # so that the layer is cut into slices

# -- what is equal


@pytest.mark.parametrize(
    ("args", "train"),
    [
        ({"optimizer": "adam", "width": WIDE}, {"towers": 2}),
        pytest.param({"optimizer": "momentum", "average": True}, {"sync": "plain", "accumulate": 2}, **NIGHTLY),
        pytest.param({"uneven": True, "optimizer": "rmsprop", "width": 1000}, {"clip_norm": 0.1}, **NIGHTLY),
        ({"subclass": True, "shuffle": "graph", "seed": 3}, {"towers": "auto"}),
    ],
    ids=["slices", "accumulated", "uneven and clipped", "apart"],
)
def test_three_workers_and_two_servers_compute_what_one_process_does(
    tmp_path: Path, args: Dict[str, Any], train: Dict[str, Any]
) -> None:
    found = compared(ended(tmp_path, args, workers=3, **train))
    assert (found["verified_steps"], found["verified_variables"]) == (8, 5 if args.get("average") else 4)
    assert found["verified_plain_steps"] == 8
    assert {name for name in found if "/" in name} == ({"differs_by_design/mean"} if args.get("average") else set())


# -- what is found


def test_a_sum_in_another_order_is_found(tmp_path: Path, monkeypatch: Any) -> None:
    taken = Separate.take

    def backwards(self: Any) -> Any:
        self.parts = self.parts[::-1]
        return taken(self)

    monkeypatch.setattr(Separate, "take", backwards)
    text = cause(ended(tmp_path, {"width": 200}, workers=3))
    assert text.startswith("step 1: servers' ") and " differs from one process in " in text, text


def test_an_update_that_is_missing_is_found_with_its_step_and_variable(tmp_path: Path, monkeypatch: Any) -> None:
    taken = Separate.take

    def skips(self: Any) -> Any:
        """Nothing in the third step for the push of which ``last`` is a part."""
        found = taken(self)
        if not any(each.op.name == "servers/last" for each in self.push.variables):
            return found
        return found * tf.cast(tf.not_equal(tf.train.get_global_step().read_value(), 2), found.dtype)

    monkeypatch.setattr(Separate, "take", skips)
    text = cause(ended(tmp_path, {}))
    assert text.startswith("step 3: servers' "), text
    assert " differs from one process in " in text and ", by at most " in text


def test_a_mistake_that_one_process_of_the_same_code_makes_too_is_found_beside_plain_tensorflow(
    tmp_path: Path, monkeypatch: Any
) -> None:
    weighed = Parts.weigh

    def doubled(self: Parts, loss: Any, counts: Any = None) -> Any:
        mean, weight = weighed(self, loss, counts)
        return 2 * mean, weight

    monkeypatch.setattr(Parts, "weigh", doubled)
    text = cause(ended(tmp_path, {}, towers=2))
    assert "step 1: servers' " in text and " differs from plain TensorFlow in " in text, text
    assert text.endswith("it looks like gradients that are counted 2 times")


def test_a_model_that_couples_examples_is_found_and_the_hosts_are_not_blamed(tmp_path: Path) -> None:
    def model(x: Any, ids: Any, y: Any, args: Dict[str, Any]) -> Any:
        loss, weights = verified.model(x, ids, y, args), tf.exp(x[:, 0])
        return tf.fill([tf.shape(x)[0]], tf.reduce_sum(weights * loss) / tf.reduce_sum(weights))

    text = cause(ended(tmp_path, {"optimizer": "adam"}, job=_with(model=model)))
    assert "step 1: servers' " in text and "it looks like a model that couples examples" in text, text
    assert len(text) < 480 and "processor" not in text


def test_a_worker_that_reads_the_shard_of_another_is_named(tmp_path: Path) -> None:
    def inputs(task: Any, args: Dict[str, Any]) -> Any:
        wrong = threading.current_thread().name == "worker:1"
        return verified.inputs(type(task)("worker", 0, task.cluster, task.batch_size) if wrong else task, args)

    text = cause(ended(tmp_path, {}, job=_with(inputs=inputs)))
    assert text.startswith("worker 1's batch of step 1 differs from the same batch read by the chief"), text


def test_a_shuffle_without_a_seed_is_named_and_the_sum_is_not_blamed(tmp_path: Path) -> None:
    text = cause(ended(tmp_path, {"shuffle": "never alike"}))
    assert "batch of step 1 differs" in text and "give every shuffle a seed" in text


def test_workers_with_unlike_numbers_of_towers_are_refused(tmp_path: Path, monkeypatch: Any) -> None:
    def devices(settings: Any) -> Any:
        return ["CPU:0", "CPU:1"] if threading.current_thread().name == "worker:0" else ["CPU:0"]

    monkeypatch.setattr("cluster.model.device_pool.tower_devices", devices)
    assert cause(ended(tmp_path, {}, towers="auto")).startswith("train.towers: expected the same number of towers on")


def _with(**functions: Any) -> ModuleType:
    """The job with other functions."""
    module = ModuleType("verified")
    vars(module).update({**vars(verified), **functions})
    return module
