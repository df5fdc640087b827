"""The files of one finished checkpoint: rename them, open them, and send them to tasks of other hosts.

A task fetches files from the chief's host through its TensorFlow server: no shared filesystem, no SSH.
"""

import os
from pathlib import Path
from typing import Any, List, Optional

from cluster.protocol.checkpoint_files import belongs_to_one
from cluster.runtime.devices import worker_device
from cluster.runtime.server_state import kept
from cluster.runtime.tf_compat import tf
from cluster.task import Task

NOT_IN_CHECKPOINT = "not found in checkpoint"  # TensorFlow's words, by which callers recognise a missing variable


def publish(merged: str, path: str) -> None:
    """Move the finished checkpoint at the path ``merged`` to ``path``, and replace a checkpoint that is there.

    The index file is removed first and added last. So an incomplete checkpoint has no index, and readers ignore it.
    """
    if os.path.exists(f"{path}.index"):
        os.unlink(f"{path}.index")
    for old in _data_files(path):  # the old checkpoint may have more files, or fewer
        old.unlink()
    for file in _data_files(merged):
        os.replace(str(file), path + file.name[len(os.path.basename(merged)) :])
    os.replace(f"{merged}.index", f"{path}.index")


def open_reader(path: str) -> Any:
    """Return TensorFlow's reader of the checkpoint at ``path``.

    Raises:
      tf.errors.DataLossError: the checkpoint is damaged.
      tf.errors.OpError: a file of the checkpoint cannot be read; the error has TensorFlow's type for the reason.
    """
    try:
        return tf.train.NewCheckpointReader(path)
    except tf.errors.OpError as error:
        if type(error) is not tf.errors.OpError:
            raise
        raise tf.errors.DataLossError(None, None, str(error)) from error  # TensorFlow 2 has no type for it


def _data_files(path: str) -> List[Path]:
    """Return the files of a checkpoint except its index."""
    start = os.path.basename(path) + ".data-"
    return [file for file in Path(path).parent.iterdir() if file.name.startswith(start)]


def largest_file(path: str) -> int:
    """Return the bytes of the largest file of the checkpoint at ``path``: no slice in the checkpoint is larger.

    To read a part of a tensor, TensorFlow reads the whole slice that the writer wrote at once. So this project does not
    read a checkpoint of another program in pieces smaller than the program's slices.
    """
    return max((file.stat().st_size for file in _data_files(path)), default=0)


TIMEOUT_S = 30.0  # for one file
_NEWEST = "newest_checkpoint"


class Noticeboard:
    """The path of the newest checkpoint, published on the chief's server for any task.

    The path is in a variable on the chief itself. The variable is in no collection, so it is neither saved nor part of
    the model. Create a ``Noticeboard`` in the chief's graph.
    """

    def __init__(self, host: str):
        self._path = tf.placeholder(tf.string, [])
        with tf.device(host):
            self._write = tf.assign(_newest(), self._path)

    def show(self, session: Any, path: str) -> None:
        """Publish ``path`` as the path of the newest checkpoint."""
        session.run(self._write, {self._path: path})


class ChiefFiles:
    """Access to the chief's checkpoint files for a task on another host.

    Every call has a time limit and raises ``tf.errors.OpError`` when the chief does not answer.
    """

    def __init__(self, task: Task):
        role = task.chief_role
        self.address = task.cluster[role][0]
        device = worker_device(role, 0)
        with tf.Graph().as_default() as graph, tf.device(device):
            self._newest = _newest()
            self._known = tf.is_variable_initialized(self._newest)
            self._pattern = tf.placeholder(tf.string, [])
            self._names = tf.io.matching_files(self._pattern)
            self._content = tf.io.read_file(self._pattern)
        config = tf.ConfigProto(device_filters=[f"/job:{role}/task:0"], operation_timeout_in_ms=int(TIMEOUT_S * 1000))
        self._session = tf.Session(f"grpc://{self.address}", graph=graph, config=config)

    def newest(self) -> Optional[str]:
        """Return the path of the newest checkpoint on the chief's host; None before the first checkpoint."""
        if not self._run(self._known):
            return None
        path: str = self._run(self._newest).decode()
        return path

    def fetch(self, path: str, folder: str) -> str:
        """Copy the checkpoint at ``path`` on the chief's host into ``folder``, file by file; return the copy's path."""
        for name in self._files(path):
            with open(os.path.join(folder, os.path.basename(name)), "wb") as file:
                file.write(self._run(self._content, name))
        return os.path.join(folder, os.path.basename(path))

    def _files(self, path: str) -> List[str]:
        names = [name.decode() for name in self._run(self._names, f"{path}.*")]
        return [name for name in names if belongs_to_one(os.path.basename(name))]

    def _run(self, fetch: Any, pattern: str = "") -> Any:
        options = tf.RunOptions(timeout_in_ms=int(TIMEOUT_S * 1000))
        return self._session.run(fetch, {self._pattern: pattern}, options=options)


def _newest() -> Any:
    with tf.variable_scope("noticeboard", reuse=tf.AUTO_REUSE):
        return kept(_NEWEST, [], tf.string, "")
