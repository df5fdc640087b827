"""Name what an author may write in the place of what a job's function returned."""

import inspect
from typing import Any, List

from cluster.job import Job
from cluster.runtime.tf_compat import tf

_OF_KERAS = {"SGD": "GradientDescent", "RMSprop": "RMSProp", "Nadam": "Adam", "Adamax": "Adam", "AdamW": "Adam"}


def named_parts(job: Job, batch: Any) -> str:
    """Return how to name the parts of a batch that is no dictionary, as the end of a sentence."""
    number = len(batch) if isinstance(batch, tuple) else 1
    names = _parameters(job) if len(_parameters(job)) == number else ["x", "y", "z"][:number]
    if len(names) < number:
        return ""
    pairs = ", ".join(f'"{name}": {name}' for name in names)
    return f"; name its parts: data.map(lambda {', '.join(names)}: {{{pairs}}})"


def _parameters(job: Job) -> List[str]:
    return [name for name in inspect.signature(job.model).parameters if name not in ("args", "training")]


def described(batch: Any) -> Any:
    """Return a short description of a batch that is no dictionary."""
    return f"a dataset of tuples of {len(batch)}" if isinstance(batch, tuple) else batch


def of_tf_train(optimizers: List[Any]) -> str:
    """Return which of TensorFlow's optimizers to make in the place of one of Keras, as the end of a sentence."""
    keras = [type(each).__name__ for each in optimizers if "keras" in type(each).__module__]
    if not keras:
        return ""
    name = f"{_OF_KERAS.get(keras[0], keras[0])}Optimizer"
    instead = name if hasattr(tf.train, name) else "AdamOptimizer"
    return f"; make a tf.train.{instead} in the place of Keras's {keras[0]}"
