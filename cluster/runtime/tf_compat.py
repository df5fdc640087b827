"""TensorFlow as this project uses it: graphs and sessions, on both 1.15 and 2.x.

Import ``tf`` from here. The import also switches 2.x back to graphs and sessions, which must happen before the first
operation is created.
"""

import importlib
import os
from typing import Any

# TensorFlow's C++ code logs an INFO line for every device and channel; keep warnings.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

import tensorflow.compat.v1 as _tensorflow

tf: Any = _tensorflow
tf.logging.set_verbosity(tf.logging.ERROR)  # the other messages advise leaving graphs and sessions
tf.disable_v2_behavior()

# That advice is hidden, but TensorFlow 1.15 prepares it for every new operation: a sixth of the time to build a graph.
vars(importlib.import_module("tensorflow.python.util.deprecation")).update(_PRINT_DEPRECATION_WARNINGS=False)
