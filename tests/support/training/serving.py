"""A server of a SavedModel, in a process of its own: a test that asks it need not load TensorFlow."""

import subprocess
import sys
from pathlib import Path
from typing import Dict, List

import numpy as np

# Both ways to load, in a folder where nothing of ours can be imported.
SERVER = """
import sys
import numpy as np
import tensorflow.compat.v1 as tf
way, folder, *requests = sys.argv[1:]


def in_session(inputs):
    feed = {signature.inputs[name].name: value for name, value in inputs.items()}
    return session.run({name: each.name for name, each in signature.outputs.items()}, feed)


def eagerly(inputs):
    outputs = signature(**{name: tf.constant(value) for name, value in inputs.items()})
    return {name: each.numpy() for name, each in outputs.items()}


if way == "session":
    session, answer = tf.Session(), in_session
    signature = tf.saved_model.load(session, ["serve"], folder).signature_def["serving_default"]
else:
    tf.enable_v2_behavior()
    signature, answer = tf.saved_model.load_v2(folder).signatures["serving_default"], eagerly
for request in requests:
    np.savez(request, **answer(dict(np.load(request))))
assert not {"cluster", "launch", "jobs"} & set(sys.modules)
"""


def predicted(folder: Path, way: str, inputs: Dict[str, np.ndarray]) -> Dict[str, np.ndarray]:
    """Return what a server of the SavedModel answers; each way is one to load it."""
    return answers(folder, way, [inputs])[0]


def answers(folder: Path, way: str, requests: List[Dict[str, np.ndarray]]) -> List[Dict[str, np.ndarray]]:
    """Return what one server answers to several requests."""
    program = folder.parent / "server.py"
    program.write_text(SERVER)
    paths = [str(folder.parent / f"request{number}.npz") for number in range(len(requests))]
    for path, inputs in zip(paths, requests):
        np.savez(path, **inputs)
    argv = [sys.executable, str(program), way, str(folder), *paths]
    ran = subprocess.run(argv, cwd=str(folder.parent), env={"PATH": ""}, stderr=subprocess.PIPE, timeout=120)
    assert ran.returncode == 0, ran.stderr.decode()[-3000:]
    return [dict(np.load(path)) for path in paths]
