"""XLA compiles nothing of a worker on TensorFlow 1.15, unless the environment has flags for it; a warning says so."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Dict

import pytest

from cluster.job import Job
from cluster.runtime.tf_compat import XLA, tf
from tests.support.training.alone import train_alone
from tests.support.training.jobs import table

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


@pytest.mark.parametrize("flags", ["", WANTED[XLA]], ids=["none", "wanted"])
def test_a_chief_warns_of_a_scope_that_is_not_compiled_and_names_the_flag_that_compiles_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str
) -> None:
    monkeypatch.setenv(XLA, flags)
    if not flags:
        monkeypatch.delenv(XLA)

    def model(**batch: Any) -> Any:
        with tf.xla.experimental.jit_scope() if OLD else nullcontext():  # 2.x compiles no graph of several devices
            return table.model(**batch) + 0.0

    job = Job(table.__file__, table.inputs, model, table.optimizer)
    assert train_alone(job, tmp_path, {"examples": 320}, steps=2, towers=1).succeeded
    warnings = json.loads((tmp_path / "worker.0" / "progress.json").read_text())["warnings"]
    assert [WANTED[XLA] in text for text in warnings] == [True] * (OLD and not flags)
