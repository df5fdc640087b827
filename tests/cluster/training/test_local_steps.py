"""Whole models in windows of local steps: as plain gradient descent in numpy, exactly counted, or refused."""

from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy as np
import pytest

from cluster import embedding
from cluster.errors import JobError
from cluster.job import Job
from cluster.model.device_pool import PoolMember
from cluster.optimizers import from_args
from cluster.runtime.tf_compat import tf
from cluster.spec import load
from cluster.task import Task, Train
from cluster.training.graph_builder import Builder
from cluster.training.run_steps import LastStep
from cluster.variables.layout import whole
from cluster.variables.masters import plain_name
from tests.support.nightly import few
from tests.support.training.alone import joined, saved, train_alone
from tests.support.training.jobs import counted
from tests.support.training.processes import Cluster
from tests.support.training.threads import ThreadedRun
from tests.support.waiting import eventually

BATCH, WIDTH, N, STEPS, RATE = 4, 40_000, 3, 8, 0.1  # w has 640,000 bytes: two servers hold it in slices
RANDOM = np.random.RandomState(1)
X, Y = RANDOM.normal(size=[STEPS, BATCH, 4]), RANDOM.normal(size=[STEPS, BATCH, 1])
FALLING = {"optimizer": "sgd", "learning_rate": RATE, "decay": {"kind": "exponential", "every": 2, "factor": 0.5}}
CONSTANT = {"optimizer": "sgd", "learning_rate": RATE}


def batches(task: Any, args: Any) -> Any:
    rows = {"x": X.reshape(-1, 4).astype(np.float32), "y": Y.reshape(-1, 1).astype(np.float32)}
    return tf.data.Dataset.from_tensor_slices(rows).batch(task.batch_size, drop_remainder=True)


def line(x: Any, y: Any) -> Any:
    w = tf.get_variable("w", [4, WIDTH], initializer=tf.ones_initializer())
    b = tf.get_variable("b", [WIDTH], initializer=tf.zeros_initializer())
    return 0.5 * tf.reduce_sum(tf.square(x @ w + b - y), 1)


def by_hand(steps: int, rate: Callable[[int], float], clip_norm: float = np.inf) -> Dict[str, np.ndarray]:
    """Plain gradient descent in float64, batch by batch."""
    w, b = np.ones([4, 1]), 0.0  # every column of w is the same
    for step in range(steps):
        error = X[step] @ w + b - Y[step]
        of_w, of_b = X[step].T @ error / BATCH, error.mean()
        moved = rate(step) * min(1.0, clip_norm / np.sqrt(WIDTH * (np.square(of_w).sum() + of_b**2)))
        w, b = w - moved * of_w, b - moved * of_b
    return {"w": w * np.ones([1, WIDTH]), "b": b * np.ones([WIDTH])}


def alike(found: Dict[str, Any], expected: Dict[str, np.ndarray]) -> None:
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=2e-5, atol=1e-6, err_msg=name)


LINE = Job(__file__, batches, line, from_args)


def called(args: Any) -> Any:
    def rate() -> Any:
        return RATE * 0.5 ** (tf.cast(tf.train.get_global_step(), tf.float32) / 2)

    return tf.train.GradientDescentOptimizer(rate)


@pytest.mark.parametrize(
    ("optimizer", "args", "rate"),
    [
        (from_args, CONSTANT, lambda step: RATE),
        (from_args, FALLING, lambda step: RATE * 0.5 ** (step / 2)),
        (called, {}, lambda step: RATE * 0.5 ** (step / 2)),
    ],
    ids=["constant", "falls", "is a function"],
)
def test_slices_and_two_towers_train_as_plain_gradient_descent_with_the_rate_of_each_step(
    optimizer: Any, args: Dict[str, Any], rate: Callable[[int], float]
) -> None:
    settings = {"mode": "async", "local_steps": N, "steps": STEPS, "batch_size": BATCH // 2, "towers": 2}
    job = Job(__file__, batches, line, optimizer).with_args(args)
    replica, session = joined(job, Train.from_dict(settings), args)
    assert set(replica.layout.cuts) == {"w", "b"} and replica.stepper.overlaps
    taken = [replica.stepper.step(session)[0] for _ in range(STEPS)]
    assert taken == [0, 0, 3, 3, 3, 6, 6, 8]
    pieces = [(whole(plain_name(each)), session.run(each)) for each in replica.of_model]  # in order
    alike(
        {name: np.concatenate([value for of, value in pieces if of == name], -1) for name in "wb"}, by_hand(STEPS, rate)
    )
    session.close()


@pytest.mark.parametrize("clip_norm", [None, 100.0])
def test_a_run_ends_at_its_last_step_with_the_variables_of_one_process(tmp_path: Path, clip_norm: Any) -> None:
    settings = {"mode": "async", "local_steps": N, "steps": STEPS, "batch_size": BATCH, "clip_norm": clip_norm}
    outcome = train_alone(LINE.with_args(CONSTANT), tmp_path, CONSTANT, **settings)
    assert (outcome.cause, outcome.step, outcome.checkpoint_step) == (None, STEPS, STEPS)
    found = saved(outcome)
    assert found["global_step"] == STEPS
    alike(found, by_hand(STEPS, lambda step: RATE, clip_norm or np.inf))


def test_a_step_whose_gradient_is_ignored_counts_and_changes_nothing(tmp_path: Path) -> None:
    def poisoned(task: Any, args: Any) -> Any:
        return batches(task, args).concatenate(batches(task, args).map(lambda each: {**each, "x": each["x"] / 0.0}))

    settings = {"mode": "async", "local_steps": 5, "steps": STEPS + 2, "batch_size": BATCH, "on_nan": "ignore"}
    outcome = train_alone(Job(__file__, poisoned, line, from_args).with_args(CONSTANT), tmp_path, CONSTANT, **settings)
    assert (outcome.cause, outcome.step) == (None, STEPS + 2)
    alike(saved(outcome), by_hand(STEPS, lambda step: RATE))


# -- counted exactly

COUNTED = "tests.support.training.jobs.counted"


def computed(folder: Path, index: int) -> int:
    """The number of gradients that all processes of a worker have computed."""
    file = folder / f"worker.{index}"
    return file.stat().st_size if file.exists() else 0


@pytest.mark.parametrize("killed", few([0, 1], [0]))
def test_the_window_of_a_killed_worker_is_lost_whole_and_every_other_step_counts_once(
    tmp_path: Path, killed: int
) -> None:
    window, steps = 20, 120
    train = {"mode": "async", "local_steps": window, "steps": steps, "batch_size": 2}
    args = {"pause_ms": 40, "notes": str(tmp_path)}
    with Cluster(tmp_path / "run", COUNTED) as cluster:
        cluster.start_all(train, args)
        eventually("the middle of a window", lambda: computed(tmp_path, killed) % window == window // 2)
        cluster.kill("worker", killed)
        lost = computed(tmp_path, killed) % window  # it computes nothing else before the end
        cluster.start("worker", killed, train, args)
        outcome = cluster.finish()
        assert outcome.step is not None and steps <= outcome.step < steps + 2 * window
        found = counted.counts(str(outcome.checkpoint))
        assert found == {"taken": outcome.step}  # what has changed the variables is what was counted
        trained = computed(tmp_path, 0) + computed(tmp_path, 1) - 1  # the chief evaluates one batch
        assert trained == outcome.step + lost and 0 < lost < window


def test_after_a_killed_parameter_server_no_window_from_before_changes_what_was_restored(tmp_path: Path) -> None:
    window, steps = 20, 200
    train = {"mode": "async", "local_steps": window, "steps": steps, "batch_size": 2, "checkpoint": {"every_s": 0.1}}
    args = {"pause_ms": 10, "notes": str(tmp_path)}
    with Cluster(tmp_path / "run", COUNTED, workers=1) as cluster:
        cluster.start_all(train, args)
        middle = 3 * window + window // 2
        eventually("the middle of a window", lambda: computed(tmp_path, 0) >= middle)
        cluster.kill("ps", 0)
        cluster.start("ps", 0, train, args)
        outcome = cluster.finish()
        assert counted.counts(str(outcome.checkpoint)) == {"taken": outcome.step} == {"taken": steps}
        assert computed(tmp_path, 0) - 1 > steps and "joining again" in cluster.log("worker", 0)


def test_a_worker_in_a_long_window_ends_with_the_others(tmp_path: Path) -> None:
    window = 100
    train = {"mode": "async", "local_steps": window, "steps": 3 * window, "batch_size": 2}
    with Cluster(tmp_path / "run", COUNTED) as cluster:
        cluster.start("ps", 0, train)
        cluster.start("worker", 0, train, {"pause_ms": 30})
        cluster.start("worker", 1, train, {"pause_ms": 500, "notes": str(tmp_path)})  # 50 s for a window
        eventually("a step", lambda: computed(tmp_path, 1))
        outcome = cluster.finish()
        assert outcome.step == 3 * window + computed(tmp_path, 1)
        assert counted.counts(str(outcome.checkpoint)) == {"taken": outcome.step}
        assert "has not left" not in cluster.log("worker", 0)


def test_a_chief_in_a_long_window_saves_what_the_others_have_trained(tmp_path: Path) -> None:
    train = {"mode": "async", "local_steps": 100, "steps": 500, "batch_size": 2}
    with Cluster(tmp_path / "run", COUNTED) as cluster:
        for (role, index), pause_ms in {("ps", 0): 0, ("worker", 0): 300, ("worker", 1): 10}.items():
            cluster.start(role, index, {**train, "checkpoint": {"every_s": 0.2, "keep": 100}}, {"pause_ms": pause_ms})
        outcome = cluster.finish()
        found = [file.with_suffix("") for file in Path(str(outcome.checkpoint)).parent.glob("model-*.index")]
        assert len(found) > 3  # not the first and the last alone
        assert all(counted.counts(str(each))["taken"] >= int(each.name.split("-")[1]) for each in found)


def test_two_workers_in_windows_count_every_gradient_that_they_give(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text("name: r\njob: x.py\ncluster: {ps: ['a:1'], worker: ['a:2', 'a:3']}\n")
    settings = Train.from_dict({"mode": "async", "local_steps": 7, "steps": 100, "batch_size": 2})
    found = ThreadedRun(load(hosts), COUNTED, settings, {}, tmp_path / "saved").start().finish()
    assert -found["taken"] == found["global_step"] and 100 <= found["global_step"] < 100 + 2 * 7


def test_an_end_that_the_chief_brings_forward_counts_what_every_worker_has_of_a_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = iter(range(100))

    def note(last: LastStep, session: Any, step: Any, fetched: Any) -> None:
        last.step = 4 if next(steps) == 6 else last.step  # learnt with the seventh step

    monkeypatch.setattr(LastStep, "note", note)
    outcome = train_alone(counted, tmp_path, {}, mode="async", local_steps=4, steps=50, batch_size=2)
    assert (outcome.cause, outcome.step, -saved(outcome)["taken"]) == (None, 7, 7)


@pytest.mark.parametrize("window", [3, 1000])
def test_a_run_ends_early_when_the_chief_has_measured_no_better(tmp_path: Path, window: int) -> None:
    best, checkpoint = {"max": "loss", "patience": 1}, {"every_s": 0.05}
    settings = {"mode": "async", "local_steps": window, "steps": 5000, "batch_size": 2, "best": best}
    outcome = train_alone(counted, tmp_path, {"pause_ms": 1}, checkpoint=checkpoint, **settings)
    assert outcome.cause is None and outcome.ended_early is not None
    assert outcome.step is not None and -saved(outcome)["taken"] == outcome.step < 5000


def test_a_decision_to_end_ends_the_chiefs_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: List[int] = []

    def note(last: LastStep, session: Any, step: Any, fetched: Any) -> None:
        noted.append(step.number)
        if len(noted) == 3:
            last.bring_forward(session, step.number)

    monkeypatch.setattr(LastStep, "note", note)
    outcome = train_alone(counted, tmp_path, {}, mode="async", local_steps=1000, steps=5000, batch_size=2)
    assert (outcome.cause, outcome.step, -saved(outcome)["taken"]) == (None, 3, 3)


# -- numbers within a window


def test_an_error_within_a_window_names_the_step_of_the_worker(tmp_path: Path) -> None:
    def ending(task: Any, args: Any) -> Any:
        return batches(task, args).take(5)

    def poisoned(task: Any, args: Any) -> Any:
        return ending(task, args).concatenate(batches(task, args).map(lambda each: {**each, "x": each["x"] / 0.0}))

    settings = {"mode": "async", "local_steps": 100, "steps": 200, "batch_size": BATCH}
    for inputs, text in [(ending, "ended after step 5,"), (poisoned, "is not a finite number in step 5,")]:
        outcome = train_alone(
            Job(__file__, inputs, line, from_args).with_args(CONSTANT), tmp_path, CONSTANT, **settings
        )
        assert text in str(outcome.cause)


def test_the_last_step_of_a_window_that_ends_training_has_a_summary(tmp_path: Path) -> None:
    settings = {"mode": "async", "local_steps": 5, "steps": STEPS, "batch_size": BATCH}
    train_alone(LINE.with_args(CONSTANT), tmp_path, CONSTANT, **settings)
    (file,) = (tmp_path / "summaries").iterdir()
    steps = [event.step for event in tf.train.summary_iterator(str(file)) if event.summary.value]
    assert steps[-1] == STEPS


# -- refused


def with_state(x: Any, y: Any) -> Any:
    mean = tf.get_variable("mean", [], trainable=False, initializer=tf.zeros_initializer())
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign(mean, tf.reduce_mean(x)))
    return line(x, y)


def with_rows(x: Any, y: Any) -> Any:
    rows = tf.get_variable("rows", [9, 1], initializer=tf.zeros_initializer())
    return line(x, y) + tf.gather(rows, tf.cast(y[:, 0], tf.int32) * 0)[:, 0]


def with_constraint(x: Any, y: Any) -> Any:
    scale = tf.get_variable("scale", [], initializer=tf.ones_initializer(), constraint=tf.nn.relu)
    return scale * line(x, y)


def of_64_bits(x: Any, y: Any) -> Any:
    scale = tf.get_variable("scale", [], tf.float64, initializer=tf.ones_initializer())
    return tf.cast(scale, tf.float32) * line(x, y)


def with_table(x: Any, y: Any) -> Any:
    table = embedding.table("table", 1)
    return line(x, y) + embedding.lookup(table, tf.cast(y[:, 0], tf.int64) * 0)[:, 0]


class OfItsOwn(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    """May do anything."""


def descent(args: Any) -> Any:
    return tf.train.GradientDescentOptimizer(0.5)


def with_variable(args: Any) -> Any:
    return tf.train.GradientDescentOptimizer(tf.Variable(0.5, trainable=False, name="rate"))


REFUSED: List[Any] = [
    (line, lambda args: tf.train.MomentumOptimizer(0.1, 0.9), "returned a MomentumOptimizer"),
    (line, lambda args: tf.train.AdagradOptimizer(0.1), "returned a AdagradOptimizer"),
    (line, lambda args: OfItsOwn(0.1), "returned a OfItsOwn"),
    (line, with_variable, "returned one with 'rate'"),
    (with_state, descent, "a loss whose step changes 'mean'"),
    (with_rows, descent, "one that uses 'rows'; expected float32 variables with dense gradients"),
    (of_64_bits, descent, "one that uses 'scale'; expected float32 variables with dense gradients"),
    (with_constraint, descent, "one that uses 'scale'; expected variables without a constraint"),
    (with_table, descent, "expected variables alone"),
]


@pytest.mark.parametrize(("model", "optimizer", "text"), REFUSED)
def test_what_a_window_would_train_otherwise_is_refused_with_the_place(model: Any, optimizer: Any, text: str) -> None:
    task = Task("worker", 0, {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"] * 2}, batch_size=2)
    job = Job(__file__, batches, model, optimizer)

    def build(**settings: Any) -> Any:
        train = Train.from_dict({"batch_size": 2, "mode": "async", **settings})
        return Builder(job, task, train, {}, [PoolMember(task, ["CPU:0"])]).build()

    build()
    with pytest.raises(JobError) as caught:
        build(local_steps=2)
    told = str(caught.value)
    assert text in told and "with train.local_steps" in told and f"{Path(__file__).name}:" in told
