"""Write the SavedModel of a checkpoint: the graph of ``predict``, its variables, and its embedding tables.

Variables and tables become variables of the SavedModel, a table in pieces of at most 1 GiB. This process holds all of
them in memory at the same time. So does, later, each server that loads the SavedModel.
"""

import os
from pathlib import Path
from typing import Any, Dict, Mapping

from cluster.checkpoints.finished_files import NOT_IN_CHECKPOINT, open_reader
from cluster.embedding import Table
from cluster.errors import CheckpointError
from cluster.job import Job
from cluster.protocol.shared_files import new_folder
from cluster.recommend.tables.stored_tables import PIECE_BYTES, FrozenTables, StoredRows, stored_tables
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
      of rows of each table.

    Raises:
      JobError: the job has no ``predict``, or its ``predict`` cannot be served.
      CheckpointError: the checkpoint cannot be read, or belongs to another model.
      OSError: the folder exists, or cannot be written.
    """
    if os.path.lexists(folder):
        raise FileExistsError(f"{folder}: expected a folder that does not exist, found an existing one; name another")
    model = trained_model(job, task, args)
    try:
        reader = open_reader(checkpoint)
        with tf.Graph().as_default() as graph:
            made = predictor(job, args, model, FrozenTables(_DEVICE, lambda table: _pieces(reader, table, piece_bytes)))
            with tf.Session(graph=graph, config=tf.ConfigProto(device_count={"GPU": 0})) as session:
                _restore(session, reader, made)
                rows = {name: table.size for name, table in made.tables.all.items()}
                _write(session, made, folder)
    except (tf.errors.OpError, ValueError) as error:
        raise CheckpointError(
            f"checkpoint {checkpoint}: {line_of(error)}; "
            "export a checkpoint that this job has trained with the same args"
        ) from error
    return {"inputs": _described(made.inputs), "outputs": _described(made.outputs), "tables": rows}


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
    shapes = reader.get_variable_to_shape_map()
    for variable in tf.global_variables():
        name, expected = variable.op.name, variable.shape.as_list()
        if name not in shapes:
            raise tf.errors.NotFoundError(None, None, f"Key {name} {NOT_IN_CHECKPOINT}")
        if shapes[name] != expected:
            raise tf.errors.InvalidArgumentError(None, None, f"{name}: expected {expected}, found {shapes[name]}")
        session.run(variable.initializer, {variable.initializer.inputs[1]: reader.get_tensor(name)})
    made.tables.load(session, reader)


def _write(session: Any, made: Predictor, folder: str) -> None:
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


def _signature(made: Predictor) -> Any:
    inputs, outputs = (
        {name: tf.saved_model.build_tensor_info(each) for name, each in named.items()}
        for named in (made.inputs, made.outputs)
    )
    return tf.saved_model.build_signature_def(inputs, outputs, tf.saved_model.signature_constants.PREDICT_METHOD_NAME)


def _described(tensors: Mapping[str, Any]) -> Dict[str, Any]:
    return {
        name: {"dtype": each.dtype.name, "shape": None if each.shape.ndims is None else each.shape.as_list()}
        for name, each in tensors.items()
    }
