"""The files of one checkpoint: give them its name, and open them."""

import os
from pathlib import Path
from typing import Any, List

from cluster.runtime.tf_compat import tf


def publish(merged: str, path: str) -> None:
    """Give a finished checkpoint its name; the index goes first and comes last, so that no half of one counts."""
    if os.path.exists(f"{path}.index"):
        os.unlink(f"{path}.index")
    for old in _data_files(path):  # of which there may be more, or fewer
        old.unlink()
    for file in _data_files(merged):
        os.replace(str(file), path + file.name[len(os.path.basename(merged)) :])
    os.replace(f"{merged}.index", f"{path}.index")


def open_reader(path: str) -> Any:
    """Return TensorFlow's reader of a checkpoint. Raises ``tf.errors.DataLossError``, or the error of its file."""
    try:
        return tf.train.NewCheckpointReader(path)
    except tf.errors.OpError as error:
        if type(error) is not tf.errors.OpError:
            raise
        raise tf.errors.DataLossError(None, None, str(error)) from error  # TensorFlow 2 has no type for it


def _data_files(path: str) -> List[Path]:
    """Return the files of a checkpoint, without its index."""
    start = os.path.basename(path) + ".data-"
    return [file for file in Path(path).parent.iterdir() if file.name.startswith(start)]


def largest_file(path: str) -> int:
    """Return the size of the largest file of a checkpoint; no tensor in it is larger.

    To read a part of a tensor, TensorFlow reads all of what was written at once. So another program's
    checkpoint is not read in pieces smaller than its own.
    """
    return max((file.stat().st_size for file in _data_files(path)), default=0)
