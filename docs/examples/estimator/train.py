"""An Estimator's ``train_and_evaluate``, in the role that ``TF_CONFIG`` gives this process."""

import argparse

import numpy as np
import tensorflow as tf

STEPS, BATCH = 300, 32


def examples():
    """Return endless batches of points on a line."""
    x = np.random.RandomState(0).uniform(-1, 1, [1000, 1]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, 2 * x + 1)).repeat().batch(BATCH)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--model_dir", required=True, help="for checkpoints and summaries; chief and evaluator share it"
    )
    folder = parser.parse_args().model_dir
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
    estimator = tf.estimator.LinearRegressor(
        [tf.feature_column.numeric_column("x")],
        model_dir=folder,
        optimizer=lambda: tf.compat.v1.train.GradientDescentOptimizer(0.01),
        # By default a worker waits 5 s times its number, too long for a run of few steps.
        config=tf.estimator.RunConfig(save_checkpoints_steps=100, experimental_max_worker_delay_secs=0),
    )
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(examples, max_steps=STEPS),
        # The evaluator exits by itself when it has measured a checkpoint of max_steps.
        tf.estimator.EvalSpec(examples, steps=10, start_delay_secs=0, throttle_secs=1),
    )


if __name__ == "__main__":
    main()
