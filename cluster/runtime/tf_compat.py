"""TensorFlow as this project uses it: graphs and sessions, on both 1.15 and 2.x.

Import ``tf`` from here. The import also switches 2.x back to graphs and sessions, which must happen before the first
operation is created.
"""

import contextlib
import gc
import importlib
import os
import sys
from typing import Any, Iterator

# TensorFlow's C++ code logs an INFO line for every device and channel; keep warnings.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")


@contextlib.contextmanager
def _without_setuptools() -> Iterator[None]:
    """Keep setuptools out of what is imported inside: loading it is a seventh of the time that TensorFlow 1.15 takes.

    TensorFlow 1.15 imports ``distutils``. setuptools has a finder of modules that loads setuptools in its place. For
    TensorFlow the standard library's is the same. Afterwards ``distutils`` is again what the finder makes of it.
    """
    hack: Any = sys.modules.get("_distutils_hack")
    has_own = sys.version_info < (3, 12) and "distutils" not in sys.modules
    if not has_own or not hasattr(hack, "remove_shim"):
        yield
        return
    hack.remove_shim()
    try:
        yield
    finally:
        hack.add_shim()
        for name in [name for name in sys.modules if name.split(".")[0] == "distutils"]:
            del sys.modules[name]


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Collect no garbage inside: there is none, and looking for it takes a twelfth of the time that a task needs."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


with _without_setuptools(), _without_collections():
    import tensorflow.compat.v1 as _tensorflow

tf: Any = _tensorflow
PACKAGES = ("tensorflow", "tensorflow_core", "keras", "tf_keras")  # of TensorFlow, and of each Keras
tf.logging.set_verbosity(tf.logging.ERROR)  # the other messages advise leaving graphs and sessions
tf.disable_v2_behavior()

# That advice is hidden, but TensorFlow 1.15 prepares it for every new operation: a sixth of the time to build a graph.
vars(importlib.import_module("tensorflow.python.util.deprecation")).update(_PRINT_DEPRECATION_WARNINGS=False)

XLA, NO_XLA = "TF_XLA_FLAGS", "--tf_xla_clustering_fuel=0"
_SCOPES = ("__xla_scope",)  # the collection of a graph with tf.xla.experimental.jit_scope


def leave_out_xla() -> None:
    """Let no later session of TensorFlow 1.15 look for operations to compile, unless the environment has flags for XLA.

    It looks before it first runs them. For each that XLA cannot compile, it goes through all kernels to write a message
    that nobody sees: 0.2 ms, and in all a tenth of the processor time of a start. TensorFlow 2.x takes no such time.

    Call this function before the first session and server of the process, which read the flags for all others.
    """
    if tf.__version__.startswith("1."):
        os.environ.setdefault(XLA, NO_XLA)


def loses_xla(graph: Any) -> bool:
    """Return whether ``graph`` asks XLA to compile a part of it, which ``leave_out_xla`` prevents."""
    return os.environ.get(XLA) == NO_XLA and bool(graph.get_collection(_SCOPES))


def is_of_tensorflow(value: Any) -> bool:
    """Return whether the class of ``value`` is one of TensorFlow or Keras, and none of an author with the same name."""
    return type(value).__module__.split(".")[0] in PACKAGES
