"""A SavedModel of ``launch export`` in TensorFlow, which deltas change, and which writes the next SavedModel."""

import json
import os
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Union

import numpy as np

from cluster.errors import DeltaError
from cluster.protocol.shared_files import new_folder
from cluster.recommend.serving.delta_file import Delta, read, refuse_other
from cluster.recommend.serving.served_model import SPARE, RowIndex, indices_with
from cluster.recommend.tables.stored_tables import LAST, give
from cluster.runtime.tf_compat import tf

_ABOUT = "assets.extra/launch.json"  # TensorFlow leaves this folder of a SavedModel to others
_Path = Union[str, "os.PathLike[str]"]


def write_about(folder: Path, version: str, tables: Mapping[str, Sequence[str]]) -> None:
    """Note in a SavedModel its version, and the names of each table's variables: ids, places, rows. Raises OSError."""
    path = folder / _ABOUT
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"version": version, "tables": tables}))


class LoadedModel:
    """A SavedModel in memory, for a program that serves it with TensorFlow.

        model = LoadedModel("served")
        scores = model.predict(user=np.array([7]))["score"]
        delta = next_delta("deltas", model.version)          # None while no file follows
        if delta:
            model.apply(delta)                               # predictions wait
        model.save("served/2")                               # for TensorFlow Serving, which loads a new folder itself

    Several threads may use a model, and one of them calls ``apply``. Each prediction is of one version. The model has a
    graph and a session of its own, also on TensorFlow 2.x.

    Args:
      folder: the SavedModel that ``launch export`` has written.

    Attributes:
      version: the version of the model, which the next delta must follow.

    Raises:
      DeltaError: the folder has no SavedModel of ``launch export`` with a version.
    """

    def __init__(self, folder: _Path):
        self._folder = Path(os.fspath(folder)).absolute()
        try:
            about = json.loads((self._folder / _ABOUT).read_text())
            self.version, tables = str(about["version"]), dict(about["tables"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise DeltaError(
                f"{folder}: expected a SavedModel of launch export with {_ABOUT}, found: {error!r}"
            ) from error
        self._turns = _Turns()
        with tf.Graph().as_default() as graph:
            self._session = tf.Session(graph=graph)
            meta = tf.saved_model.load(self._session, [tf.saved_model.tag_constants.SERVING], str(self._folder))
            self._saver = tf.train.Saver(saver_def=meta.saver_def)
            self._variables = {each.op.name: each for each in tf.global_variables()}
            self._tables = {
                name: _LoadedTable(self._session, [self._variables[each] for each in names])
                for name, names in tables.items()
            }
        signature = meta.signature_def[tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY]
        self._inputs = {name: each.name for name, each in signature.inputs.items()}
        self._outputs = {name: each.name for name, each in signature.outputs.items()}
        graph.finalize()

    def predict(self, **inputs: Any) -> Dict[str, np.ndarray]:
        """Return the outputs of the model by name, for its inputs by name.

        Raises:
          DeltaError: a delta was applied only in part, because of an error of the system; load the model again.
          KeyError: the model has no input of such a name.
        """
        with self._turns.shared():
            self._refuse_partial()
            found: Dict[str, np.ndarray] = self._session.run(
                self._outputs, {self._inputs[name]: value for name, value in inputs.items()}
            )
            return found

    def apply(self, path: _Path) -> None:
        """Change the model to the version of the delta in the file at ``path``.

        Raises:
          DeltaError: the file is damaged, or does not follow the model's version; the model has not changed.
          OSError: the file cannot be read.
        """
        self._refuse_partial()
        delta = read(path)
        refuse_other(delta, self.version, {name: each.width for name, each in self._tables.items()})
        indices = indices_with(delta, {name: each.index for name, each in self._tables.items()})
        self._refuse_other_variables(delta)
        with self._turns.alone():
            self.version = ""
            for name, value in delta.variables.items():
                give(self._session, self._variables[name], value)
            for name, each in delta.tables.items():
                self._tables[name].change(self._session, *indices[name], each.rows)
            self.version = delta.version

    def _refuse_partial(self) -> None:
        if not self.version:
            raise DeltaError(f"{self._folder}: a delta was applied in part; load the model again")

    def _refuse_other_variables(self, delta: Delta) -> None:
        for name, value in delta.variables.items():
            shape = self._variables[name].shape.as_list() if name in self._variables else None
            if shape != list(value.shape):
                raise DeltaError(f"{delta.name}: expected the variable {name!r} of shape {shape}, found {value.shape}")

    def save(self, folder: _Path) -> None:
        """Write the model as a SavedModel into the new folder ``folder``, completely or not at all.

        The graph comes from the folder that was loaded, which must still be there.

        Raises:
          DeltaError: as for ``predict``.
          OSError: the folder exists, or cannot be written.
        """
        self._refuse_partial()
        path = Path(os.fspath(folder)).absolute()
        if os.path.lexists(str(path)):
            raise FileExistsError(f"{path}: expected a folder that does not exist, found an existing one; name another")
        with self._turns.shared(), new_folder(path) as partial:
            partial.rmdir()
            source = str(self._folder)
            shutil.copytree(source, str(partial), ignore=lambda of, _: ["variables"] if of == source else [])
            (partial / "variables").mkdir()
            options: Dict[str, Any] = {"write_meta_graph": False, "write_state": False}
            self._saver.save(self._session, str(partial / "variables" / "variables"), **options)
            about = json.loads((partial / _ABOUT).read_text())
            write_about(partial, self.version, about["tables"])

    def close(self) -> None:
        """Free the memory of the model."""
        with self._turns.alone():
            self._session.close()


class _Scatter(NamedTuple):
    operation: Any
    places: Any
    rows: Any


class _LoadedTable:
    """The variables of one table, with the places of its rows; see ``FrozenTable``."""

    def __init__(self, session: Any, variables: List[Any]):
        self._ids, self._places, *self._rows = variables
        self._sizes = [tf.shape(each.read_value(), out_type=tf.int64)[0] for each in self._rows]
        self._values = [each.read_value() for each in self._rows]
        self.width = int(self._rows[0].shape[1])
        self._scatters = [self._scatter(each) for each in self._rows]
        ids, places = session.run([self._ids, self._places])
        free = np.setdiff1d(np.arange(int(places.max()) + 1), places[:-1])
        self.index = RowIndex(ids[:-1], places[:-1], free, int(places.max()) + 1)
        self._room: List[int] = session.run(self._sizes)

    def _scatter(self, variable: Any) -> _Scatter:
        places, rows = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None, self.width])
        with tf.device(variable.device):
            made = tf.raw_ops.ResourceScatterUpdate(resource=variable.handle, indices=places, updates=rows)
        return _Scatter(made, places, rows)

    def change(self, session: Any, index: RowIndex, places: np.ndarray, rows: np.ndarray) -> None:
        if index.end > sum(self._room):
            self._grow(session, index.end)
        owner = places // max(self._room[0], 1)
        for number, scatter in enumerate(self._scatters):
            own = owner == number
            if own.any():
                feed = {scatter.places: places[own] - number * self._room[0], scatter.rows: rows[own]}
                session.run(scatter.operation, feed)
        if index.ids is not self.index.ids:
            give(session, self._ids, np.append(index.ids, LAST))
            give(session, self._places, np.append(index.places, -1))
        self.index = index

    def _grow(self, session: Any, end: int) -> None:
        """Make room for rows at the places below ``end``, and some more; all pieces have one size."""
        size = -(-(end + end // SPARE) // len(self._rows))
        values = np.zeros([size * len(self._rows), self.width], np.float32)
        values[: sum(self._room)] = np.concatenate(session.run(self._values))
        for number, variable in enumerate(self._rows):
            give(session, variable, values[number * size : (number + 1) * size])
        self._room = [size] * len(self._rows)


class _Turns:
    """Turns at a model: many share it, or one has it alone. Those that wait to have it alone come first."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._sharing = self._waiting = 0
        self._is_alone = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._is_alone and not self._waiting)
            self._sharing += 1
        try:
            yield
        finally:
            with self._condition:
                self._sharing -= 1
                self._condition.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._condition:
            self._waiting += 1
            try:
                self._condition.wait_for(lambda: not self._is_alone and not self._sharing)
            finally:
                self._waiting -= 1
                self._condition.notify_all()
            self._is_alone = True
        try:
            yield
        finally:
            with self._condition:
                self._is_alone = False
                self._condition.notify_all()
