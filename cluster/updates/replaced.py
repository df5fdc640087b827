"""Replace a method of TensorFlow's base class of optimizers for a while."""

import contextlib
import threading
from typing import Any, Callable, Iterator

from cluster.runtime.tf_compat import tf

_ONE_AT_A_TIME = threading.RLock()  # a class has one method for all threads


@contextlib.contextmanager
def in_place_of(method: str, replacement: Callable[..., Any]) -> Iterator[None]:
    """Inside, ``tf.train.Optimizer`` has ``replacement`` as its method of that name, in this thread's calls alone."""
    with _ONE_AT_A_TIME:
        own = getattr(tf.train.Optimizer, method)
        setattr(tf.train.Optimizer, method, replacement)
        try:
            yield
        finally:
            setattr(tf.train.Optimizer, method, own)
