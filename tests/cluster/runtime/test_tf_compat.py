"""TensorFlow as this project uses it."""

import json
import os
import subprocess
import sys
from pathlib import Path
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
print(gc.isenabled() and gc.get_freeze_count())
print("setuptools" in sys.modules)
if "_distutils_hack" in sys.modules:
    import distutils
    print(distutils.__file__)
    warnings.simplefilter("error")
    import setuptools
"""


def test_setuptools_is_not_loaded_with_tensorflow_and_the_collector_is_as_before() -> None:
    """A program that serves a model loads TensorFlow too, and what it had before is its own."""
    frozen, loaded, *found = subprocess.check_output([sys.executable, "-c", _LOADS], universal_newlines=True).split()
    assert frozen == "0" and loaded == "False" and all("setuptools" in each for each in found)


def test_in_a_task_nothing_that_was_loaded_is_looked_at_by_the_collector_again(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text("import gc\nraise ValueError(gc.isenabled() and gc.get_freeze_count() > 100000)\n")
    cluster = {"ps": ["localhost:1"], "worker": ["localhost:2"]}
    config = {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}})}
    argv = [sys.executable, "-m", "jobs.main", str(job)]
    ran = subprocess.run(argv, env={**os.environ, **config}, stderr=subprocess.PIPE, text=True, timeout=60)
    assert ran.returncode == 1 and ": ValueError: True, in" in ran.stderr.splitlines()[-1], ran.stderr
