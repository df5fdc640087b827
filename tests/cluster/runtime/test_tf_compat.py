"""TensorFlow as this project uses it."""

import subprocess
import sys
from typing import Any

import pytest
from tensorflow.python.util import deprecation

from cluster.runtime.tf_compat import tf


def test_nothing_is_prepared_for_advice_that_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("an operation's arguments were bound to their names")

    monkeypatch.setattr(deprecation.tf_inspect, "getcallargs", prepare)
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.reduce_sum(tf.ones([3]), reduction_indices=0)) == 3


# Reports what TensorFlow's loading leaves: of the collector of garbage, of setuptools, and for a job that imports both.
_LOADS = """
import gc, sys, warnings
from cluster.runtime import tf_compat
print(gc.isenabled() and gc.get_freeze_count() > 100000)
print("setuptools" in sys.modules)
if "_distutils_hack" in sys.modules:
    import distutils
    print(distutils.__file__)
    warnings.simplefilter("error")
    import setuptools
"""


def test_setuptools_is_not_loaded_with_tensorflow_and_nothing_that_was_is_looked_at_by_the_collector_again() -> None:
    frozen, loaded, *found = subprocess.check_output([sys.executable, "-c", _LOADS], universal_newlines=True).split()
    assert frozen == "True" and loaded == "False" and all("setuptools" in each for each in found)
