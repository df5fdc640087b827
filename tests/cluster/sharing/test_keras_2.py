"""Models train with Keras 2 on TensorFlow 2.x as well, where ``tf-keras`` takes the place of Keras 3."""

import os
import subprocess
import sys
from pathlib import Path

from cluster.runtime.tf_compat import tf

OF_KERAS = ["test_variables.py", "test_graph_collections.py", "../recommend/tables/test_keras_layers.py"]
ADVICE = "ignore:`tf.layers"  # to leave them for tf.keras.layers

if not tf.version.VERSION.startswith("1."):  # TensorFlow 1.15 has no other Keras

    def test_models_with_layers_of_tf_keras_have_the_same_variables_updates_and_rows() -> None:
        files = [str(Path(__file__).parent / name) for name in OF_KERAS]
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", ADVICE, *files],
            env={**os.environ, "TF_USE_LEGACY_KERAS": "1"}, stdout=subprocess.PIPE, text=True,
            timeout=500, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stdout
