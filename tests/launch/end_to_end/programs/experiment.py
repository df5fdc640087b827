"""Training by contrib.learn's Experiment, which knows the chief as ``master``, with a relative model_dir."""

from typing import Any, Tuple

import tensorflow as tf
from tensorflow.contrib import layers, learn


def examples() -> Tuple[Any, Any]:
    return {"x": tf.constant([[1.0], [2.0]])}, tf.constant([[2.0], [4.0]])


def experiment(run_config: Any, hparams: Any) -> Any:
    regressor = learn.LinearRegressor([layers.real_valued_column("x")], model_dir="out", config=run_config)
    return learn.Experiment(regressor, examples, examples, train_steps=30, eval_steps=1, train_steps_per_iteration=30)


def main() -> None:
    tf.logging.set_verbosity(tf.logging.INFO)
    hparams = tf.contrib.training.HParams()
    learn.learn_runner.run(experiment, run_config=learn.RunConfig(model_dir="out"), hparams=hparams)


if __name__ == "__main__":
    main()
