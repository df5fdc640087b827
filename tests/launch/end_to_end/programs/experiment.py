"""Training by contrib.learn's Experiment, which knows the chief as ``master``, with a relative model_dir."""

import json
import os
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
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    # TensorFlow waits without end where a session closes while a worker that it knows leaves: each knows servers alone.
    seen = tf.ConfigProto(device_filters=["/job:ps", f"/job:{task['type']}/task:{task['index']}"])
    config = learn.RunConfig(model_dir="out", session_config=seen)
    learn.learn_runner.run(experiment, run_config=config, hparams=hparams)


if __name__ == "__main__":
    main()
