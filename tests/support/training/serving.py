"""A server of a SavedModel, in a process of its own: a test that asks it need not load TensorFlow."""

import subprocess
import sys
from pathlib import Path
from typing import Dict

import numpy as np

# Both ways to load, in a folder where nothing of ours can be imported.
SERVER = """
import sys
import numpy as np
import tensorflow.compat.v1 as tf
way, folder, fed, found = sys.argv[1:]
inputs = dict(np.load(fed))
if way == "session":
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.load(session, ["serve"], folder).signature_def["serving_default"]
        feed = {signature.inputs[name].name: value for name, value in inputs.items()}
        outputs = session.run({name: each.name for name, each in signature.outputs.items()}, feed)
else:
    tf.enable_v2_behavior()
    predict = tf.saved_model.load_v2(folder).signatures["serving_default"]
    outputs = {name: each.numpy() for name, each in predict(**{n: tf.constant(v) for n, v in inputs.items()}).items()}
np.savez(found, **outputs)
assert not {"cluster", "launch", "jobs"} & set(sys.modules)
"""


def predicted(folder: Path, way: str, inputs: Dict[str, np.ndarray]) -> Dict[str, np.ndarray]:
    """Return what a server of the SavedModel answers; each way is one to load it."""
    np.savez(str(folder.parent / "fed.npz"), **inputs)
    program = folder.parent / "server.py"
    program.write_text(SERVER)
    argv = [
        sys.executable,
        str(program),
        way,
        str(folder),
        str(folder.parent / "fed.npz"),
        str(folder.parent / "found"),
    ]
    ran = subprocess.run(argv, cwd=str(folder.parent), env={"PATH": ""}, stderr=subprocess.PIPE, timeout=120)
    assert ran.returncode == 0, ran.stderr.decode()[-3000:]
    return dict(np.load(str(folder.parent / "found.npz")))
