"""Write the SavedModel of a checkpoint: the graph of ``predict``, its variables, and its embedding tables.

Variables and tables become variables of the SavedModel, a table in pieces of at most 1 GiB. This process holds all of
them in memory at the same time. So does, later, each server that loads the SavedModel.
"""

import os
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional

from cluster.checkpoints.finished_files import open_reader
from cluster.embedding import Table
from cluster.errors import CheckpointError
from cluster.job import Job
from cluster.protocol.checkpoint_files import version_of
from cluster.protocol.shared_files import new_folder
from cluster.recommend.serving import delta_file
from cluster.recommend.serving.changes import EMPTY, Version, changes, value_of
from cluster.recommend.serving.loaded_model import write_about
from cluster.recommend.tables.stored_tables import PIECE_BYTES, FrozenTables, StoredRows, give, stored_tables
from cluster.runtime.tf_compat import tf
from cluster.runtime.tf_errors import line_of
from cluster.serving.predictor import Predictor, predictor, trained_model
from cluster.task import Task

_DEVICE = "/device:CPU:0"
_SIGNATURE = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY


def export(
    job: Job, task: Task, args: Mapping[str, Any], checkpoint: str, folder: str, piece_bytes: int = PIECE_BYTES
) -> Dict[str, Any]:
    """Write the SavedModel of ``checkpoint`` into ``folder``, which must not exist; an error leaves no partial folder.

    Args:
      piece_bytes: the largest size, in bytes, of a piece of a table; each piece is a variable.

    Returns:
      A mapping: under ``inputs`` and ``outputs`` the type and shape of each tensor by name, under ``tables`` the number
      of rows of each table, under ``version`` the version of the checkpoint.

    Raises:
      JobError: the job has no ``predict``, or its ``predict`` cannot be served.
      CheckpointError: the checkpoint cannot be read, or belongs to another model.
      OSError: the folder exists, or cannot be written.
    """
    if os.path.lexists(folder):
        raise FileExistsError(f"{folder}: expected a folder that does not exist, found an existing one; name another")
    model = trained_model(job, task, args)
    with _blaming(checkpoint):
        reader, version = open_reader(checkpoint), version_of(checkpoint)
        with tf.Graph().as_default() as graph:
            made = predictor(job, args, model, FrozenTables(_DEVICE, lambda table: _pieces(reader, table, piece_bytes)))
            with tf.Session(graph=graph, config=tf.ConfigProto(device_count={"GPU": 0})) as session:
                _restore(session, reader, made)
                rows = {name: table.size for name, table in made.tables.all.items()}
                _write(session, made, folder, version)
    return _described(made, rows, version)


def export_delta(
    job: Job, task: Task, args: Mapping[str, Any], checkpoint: str, since: Optional[str], folder: str
) -> Dict[str, Any]:
    """Write the delta from the checkpoint ``since`` to ``checkpoint`` into ``folder``, which must exist.

    The function writes no file if both are one version.

    Args:
      since: the path of a checkpoint; None for a delta that has the whole model.

    Returns:
      The mapping that ``export`` returns.

    Raises:
      JobError, CheckpointError: as for ``export``.
      OSError: a checkpoint has gone, or the file cannot be written.
    """
    model = trained_model(job, task, args)
    with _blaming(checkpoint):
        with tf.Graph().as_default():
            made = predictor(job, args, model, FrozenTables(_DEVICE))
            variables = {each.op.name: each.shape.as_list() for each in tf.global_variables()}
        newest = _opened(checkpoint)
        with _blaming(since or ""):
            earlier = EMPTY if since is None else _opened(since)
        delta = changes(earlier, newest, [each.table for each in made.tables.all.values()], variables)
    if delta.since != delta.version:
        delta_file.write(delta, folder)
    return _described(made, {name: each.size for name, each in delta.tables.items()}, delta.version)


def _opened(checkpoint: str) -> Version:
    reader = open_reader(checkpoint)
    return Version(version_of(checkpoint), reader)


@contextmanager
def _blaming(checkpoint: str) -> Iterator[None]:
    """Raise CheckpointError for an error of TensorFlow inside, since the checkpoint does not fit the job."""
    try:
        yield
    except (tf.errors.OpError, ValueError) as error:
        raise CheckpointError(
            f"checkpoint {checkpoint}: {line_of(error)}; "
            "export a checkpoint that this job has trained with the same args"
        ) from error


def _pieces(reader: Any, table: Table, piece_bytes: int) -> int:
    found = stored_tables(reader).get(table.name)
    rows = 0 if found is None else len(StoredRows(reader, found, table.expire).ids)
    return max(1, -(-rows * 4 * table.width // piece_bytes))


def _restore(session: Any, reader: Any, made: Predictor) -> None:
    """Give the graph the checkpoint's values, one variable at a time.

    Raises:
      tf.errors.NotFoundError, tf.errors.InvalidArgumentError: the checkpoint lacks a variable, or has it with another
        shape.
    """
    for variable in tf.global_variables():
        give(session, variable, value_of(reader, variable.op.name, variable.shape.as_list()))
    made.tables.load(session, reader)


def _write(session: Any, made: Predictor, folder: str, version: str) -> None:
    for table in made.tables.all.values():
        for variable in table.variables:
            tf.add_to_collection(tf.GraphKeys.GLOBAL_VARIABLES, variable)
    with new_folder(Path(folder).absolute()) as partial:
        builder = tf.saved_model.Builder(str(partial))
        builder.add_meta_graph_and_variables(
            session, [tf.saved_model.tag_constants.SERVING], {_SIGNATURE: _signature(made)},
            assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS), clear_devices=True,
            main_op=tf.group(tf.local_variables_initializer(), tf.tables_initializer()),
            saver=tf.train.Saver(tf.global_variables(), allow_empty=True),
        )  # fmt: skip
        builder.save()
        tables = made.tables.all.items()
        write_about(partial, version, {name: [each.op.name for each in table.variables] for name, table in tables})


def _signature(made: Predictor) -> Any:
    inputs, outputs = (
        {name: tf.saved_model.build_tensor_info(each) for name, each in named.items()}
        for named in (made.inputs, made.outputs)
    )
    return tf.saved_model.build_signature_def(inputs, outputs, tf.saved_model.signature_constants.PREDICT_METHOD_NAME)


def _described(made: Predictor, rows: Mapping[str, int], version: str) -> Dict[str, Any]:
    return {"inputs": _types(made.inputs), "outputs": _types(made.outputs), "tables": dict(rows), "version": version}


def _types(tensors: Mapping[str, Any]) -> Dict[str, Any]:
    return {
        name: {"dtype": each.dtype.name, "shape": None if each.shape.ndims is None else each.shape.as_list()}
        for name, each in tensors.items()
    }
