"""A mistake in a job is told with the file and the line to look at."""

from pathlib import Path
from typing import Any

import pytest

from cluster.job import load
from tests.support.training.alone import train_alone

OPTIMIZER = "def optimizer(args): return tf.train.GradientDescentOptimizer(0.1)"
INPUTS = "def inputs(task, args): return tf.data.Dataset.from_tensors({'x': tf.ones([4])}).repeat()"
MODEL = "def model(x): return x * tf.get_variable('w', [])"
SEVEN = "def inputs(task, args): return tf.data.Dataset.from_tensor_slices({'x': tf.ones([7])}).batch(4)"
PAIR = "(tf.ones([4]), tf.ones([4]))"
HEAD = "import tensorflow.compat.v1 as tf"
OWN = "def model(x):\n    w = tf.Variable(1.0, name=f'w{len(tf.global_variables())}')\n    return x * w"


@pytest.mark.parametrize(
    ("lines", "line", "told"),
    [
        (
            [INPUTS, OPTIMIZER, "def model(x):\n    return x * tf.get_variable('w', [3])"],
            5,
            "ValueError: Dimensions must",
        ),
        (
            [
                INPUTS,
                OPTIMIZER,
                MODEL.replace(": ", ":\n    y = tf.boolean_mask(x, x > 1)\n    ") + " + y",
            ],
            6,
            "Incompatible shapes",
        ),
        (
            [INPUTS, OPTIMIZER, "def model(x): return x"],
            4,
            "model returned a loss without variables; expected one that",
        ),
        ([INPUTS, OPTIMIZER, "def model(x):\n    return tf.reduce_mean(x)"], 4, "expected one loss per example"),
        ([OPTIMIZER, MODEL, INPUTS.replace(".repeat()", "")], 4, "the dataset of inputs ended after step 1"),
        ([OPTIMIZER, MODEL, "def inputs(task, args): return 3"], 4, "inputs returned 3; expected a tf.data.Dataset"),
        (
            [OPTIMIZER, MODEL, INPUTS.replace("[4]", "[5]")],
            4,
            "inputs returned batches of [5] as 'x'; expected batches of task.batch_size = 4",
        ),
        ([INPUTS, OPTIMIZER, OWN], 5, "NotShared: tower 1 made variables of its own (w2)"),
        (
            [OPTIMIZER, MODEL, SEVEN],
            4,
            "x: expected a batch that divides among 2 towers, found 3 examples; batch with drop_remainder=True",
        ),
        (
            [OPTIMIZER, MODEL.replace("(x)", "(x, label, args)"), INPUTS.replace("{'x': tf.ones([4])}", PAIR)],
            4,
            "inputs returned a dataset of tuples of 2; expected a dataset of {name: tensor}; name its parts:"
            ' data.map(lambda x, label: {"x": x, "label": label})',
        ),
        ([INPUTS, MODEL, "def optimizer(args): return 'adam'"], 4, "expected a tf.train.Optimizer"),
        ([INPUTS, OPTIMIZER, MODEL, "def evaluate(task, args):\n    return 1 / 0"], 6, "ZeroDivisionError"),
        (
            [INPUTS, MODEL, "def optimizer(args): return tf.keras.optimizers.RMSprop(0.1)"],
            4,
            "expected a tf.train.Optimizer, or {prefix of variable names: tf.train.Optimizer}; use"
            " tf.train.RMSPropOptimizer instead of Keras's RMSprop",
        ),
    ],
)
def test_a_mistake_is_told_with_file_and_line(tmp_path: Path, lines: Any, line: int, told: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text("\n".join([HEAD, *lines]))
    outcome = train_alone(load(str(path), tmp_path), tmp_path, {}, steps=3, batch_size=2, towers=2)
    assert not outcome.succeeded and not outcome.retry
    assert str(outcome.cause).startswith(f"{path}:{line}: "), outcome.cause
    assert told in str(outcome.cause)


def with_rate(rate: str) -> str:
    return OPTIMIZER.replace("0.1", rate)


GENERATED = """def inputs(task, args):
    def numbers():
        yield 1.0
        {}
    data = tf.data.Dataset.from_generator(numbers, tf.float32, []).map(lambda x: {{'x': x}})
    return data.repeat().batch(task.batch_size, drop_remainder=True)"""
UNLISTED = MODEL.replace("w', []", "w', [], collections=['mine']")
# What fails in a step fails with its batch: TensorFlow 1.15 may wait without end for a batch of a step that has failed.
UNSET = """def model(x):
    v, w = tf.get_variable('v', []), tf.get_variable('w', [], collections=['mine'], trainable=False)
    with tf.control_dependencies([x]):
        return x * v * w.read_value()"""
NO_QUOTIENT = "tf.py_func(lambda y: 1 / 0, [x], tf.float32)"


@pytest.mark.parametrize(
    ("lines", "line", "told"),
    [
        ([INPUTS, MODEL, with_rate("None")], 4, "ValueError: None values not supported"),
        ([INPUTS, MODEL, with_rate("tf.ones([2])")], 4, "ValueError: Shape must be rank 0 but is rank 1"),
        ([INPUTS, MODEL, "def optimizer(): return 1"], 4, "TypeError: optimizer() takes 0 positional arguments"),
        ([INPUTS, OPTIMIZER, MODEL.replace("(x)", "(x, z)")], 4, "TypeError: model() missing 1 required"),
        ([INPUTS, OPTIMIZER, MODEL + " > 0"], 4, "expected a loss of a type like float32"),
        ([INPUTS, OPTIMIZER, MODEL + ", {3: x}"], 4, "expected names that are strings"),
        ([OPTIMIZER, MODEL, GENERATED.format("raise KeyError('age')")], 7, "KeyError: 'age', in `raise KeyError"),
        ([OPTIMIZER, MODEL, GENERATED.format("yield 'a'")], 4, "TypeError: `generator` yielded an element"),
        ([INPUTS, OPTIMIZER, f"{MODEL} + {NO_QUOTIENT}"], 4, "ZeroDivisionError: "),
        ([INPUTS, OPTIMIZER, UNLISTED], 4, "expected a trained variable in the collection tf.GraphKeys.GLOBAL_VAR"),
        ([INPUTS, OPTIMIZER, UNSET], 7, "Attempting to use uninitialized value w"),
    ],
)
def test_a_mistake_that_tensorflow_finds_is_told_with_file_and_line_and_not_tried_again(
    tmp_path: Path, lines: Any, line: int, told: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text("\n".join([HEAD, *lines]))
    outcome = train_alone(load(str(path), tmp_path), tmp_path, {}, steps=3, batch_size=4)
    assert not outcome.succeeded and not outcome.retry
    assert str(outcome.cause).startswith(f"{path}:{line}: "), outcome.cause
    assert told in str(outcome.cause)


@pytest.mark.parametrize("error", ["OSError('no such disk')", "ConnectionError('nobody there')"])
def test_what_a_generator_could_not_read_is_tried_again(tmp_path: Path, error: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text("\n".join([HEAD, OPTIMIZER, MODEL, GENERATED.format(f"raise {error}")]))
    outcome = train_alone(load(str(path), tmp_path), tmp_path, {}, steps=3, batch_size=4)
    assert not outcome.succeeded and outcome.retry


def test_variables_that_an_evaluation_would_not_share_are_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    evaluate = INPUTS.replace("inputs", "evaluate").replace(".repeat()", "")
    path.write_text("\n".join([HEAD, INPUTS, OPTIMIZER, evaluate, OWN]))
    outcome = train_alone(load(str(path), tmp_path), tmp_path, {}, steps=3, batch_size=4)
    told = f"{path}:6: NotShared: the evaluation made variables of its own (w2)"
    assert str(outcome.cause).startswith(told), outcome
