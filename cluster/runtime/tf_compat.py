"""TensorFlow as this project uses it: graphs and sessions, on 1.15 and on 2.x alike.

Import ``tf`` from here: importing it also switches 2.x back to graphs and sessions,
which must happen before the first operation is made.
"""

import importlib
import os
from typing import Any

# TensorFlow's C++ side writes an INFO line for every device and channel; keep warnings.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

import tensorflow.compat.v1 as _tensorflow

tf: Any = _tensorflow
tf.logging.set_verbosity(tf.logging.ERROR)  # the rest is advice to leave graphs and sessions
tf.disable_v2_behavior()

# That advice is not shown, but TensorFlow 1.15 prepares it whenever an operation is made: a sixth of building a graph.
vars(importlib.import_module("tensorflow.python.util.deprecation")).update(_PRINT_DEPRECATION_WARNINGS=False)
