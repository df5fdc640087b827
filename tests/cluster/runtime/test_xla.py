"""XLA compiles nothing of a worker on TensorFlow 1.15, unless the environment has flags for it; a warning says so."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Dict

import pytest

from cluster.job import Job
from cluster.runtime.tf_compat import XLA, leave_out_xla, tf
from cluster.training.job_warnings import Scopes

OLD = tf.__version__.startswith("1.")
WANTED = {XLA: "--tf_xla_auto_jit=0"}
RUN = """
from cluster.runtime import server
from cluster.runtime.tf_compat import tf
server.settle_threads()
with tf.Graph().as_default():
    with tf.xla.experimental.jit_scope():
        x = tf.random_uniform([4, 4])
        y = tf.tanh(x @ x + 1.0) * 3.0
    ran = tf.RunMetadata()
    tf.Session().run(y, options=tf.RunOptions(output_partition_graphs=True), run_metadata=ran)
print(*{node.op for graph in ran.partition_graphs for node in graph.node})
"""


@pytest.mark.parametrize("flags", [{}, WANTED], ids=["none", "wanted"])
def test_a_scope_is_compiled_where_the_environment_has_flags_and_on_tensorflow_2(flags: Dict[str, str]) -> None:
    env = {name: value for name, value in os.environ.items() if name != XLA}
    ran = subprocess.check_output([sys.executable, "-c", RUN], env={**env, **flags})
    assert (b"_XlaRun" in ran.split()) == bool(flags or not OLD)


def test_a_model_with_a_scope_gets_a_warning_with_the_flag_that_compiles_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    job = Job(str(tmp_path / "job.py"), print, print, print)
    monkeypatch.setenv(XLA, "")  # so that it is as before after the test
    monkeypatch.delenv(XLA)
    leave_out_xla()
    with tf.Graph().as_default() as graph:
        assert Scopes(job, graph).warnings() == []
        with tf.xla.experimental.jit_scope():
            tf.constant(1.0)
        assert ["--tf_xla_auto_jit=0" in text for text in Scopes(job, graph).warnings()] == [True] * OLD
        monkeypatch.setenv(XLA, "--tf_xla_auto_jit=0")
        assert Scopes(job, graph).warnings() == []
