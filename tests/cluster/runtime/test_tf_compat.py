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


# Reports whether setuptools is loaded with TensorFlow, and what a job finds that imports both afterwards.
_LOADS = """
import sys, warnings
from cluster.runtime import tf_compat
print("setuptools" in sys.modules)
if "_distutils_hack" in sys.modules:
    import distutils
    print(distutils.__file__)
    warnings.simplefilter("error")
    import setuptools
"""


def test_setuptools_is_not_loaded_with_tensorflow_and_a_job_finds_what_it_would_have_found() -> None:
    loaded, *found = subprocess.check_output([sys.executable, "-c", _LOADS], universal_newlines=True).split()
    assert loaded == "False" and all("setuptools" in each for each in found)
