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
        ([INPUTS, OPTIMIZER, "def model(x):\n    return tf.reduce_mean(x)"], 4, "model returned"),
        ([OPTIMIZER, MODEL, INPUTS.replace(".repeat()", "")], 4, "the dataset of inputs ended after step 1"),
        ([OPTIMIZER, MODEL, INPUTS.replace("[4]", "[5]")], 4, "inputs returned batches of [5] as 'x'"),
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
        (
            [INPUTS, MODEL, "def optimizer(args): return tf.keras.optimizers.RMSprop(0.1)"],
            4,
            "expected a tf.train.Optimizer, or {beginning of names: tf.train.Optimizer}; make a"
            " tf.train.RMSPropOptimizer in the place of Keras's RMSprop",
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


def test_variables_that_an_evaluation_would_not_share_are_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    evaluate = INPUTS.replace("inputs", "evaluate").replace(".repeat()", "")
    path.write_text("\n".join([HEAD, INPUTS, OPTIMIZER, evaluate, OWN]))
    outcome = train_alone(load(str(path), tmp_path), tmp_path, {}, steps=3, batch_size=4)
    told = f"{path}:6: NotShared: the evaluation made variables of its own (w2)"
    assert str(outcome.cause).startswith(told), outcome
