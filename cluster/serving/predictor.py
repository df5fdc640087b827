"""The graph of a job's ``predict``, with the variables and embedding tables of its ``model``.

``predict`` has the same parameters as ``model``, without labels:

    def predict(user, ad):
        return {"click": tf.nn.sigmoid(logits_of(user, ad))}

``predict`` finds variables by their names. So ``model`` is built first, in a separate graph that is then discarded.
TensorFlow numbers layers that have no name, such as those of Keras; these numbers must be the same in both functions.

The graph is fed the tensors of a training batch, with any number of examples. A sparse tensor becomes three inputs,
``NAME_indices``, ``NAME_values`` and ``NAME_dense_shape``. A ragged tensor becomes two, ``NAME_values`` and
``NAME_row_lengths``. So a caller needs only dense tensors.
"""

import inspect
import re
from collections import defaultdict
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence

from cluster.errors import JobError
from cluster.job import Job
from cluster.model.job_results import COUNTS, PLACE, batch_of
from cluster.recommend.tables.stored_tables import FrozenTables
from cluster.runtime.tf_compat import tf
from cluster.sharing.variables import Sharing
from cluster.stages import tower_on
from cluster.steps.extension import rows_from
from cluster.task import Task


class InputColumn(NamedTuple):
    """The kind, type and shape of one input of a batch, as values that belong to no graph.

    ``kind`` is dense, sparse, ragged or deeply ragged, or the name of the Python type of any other value. ``shape`` is
    the shape of a dense tensor, None if unknown; the number of dimensions of a sparse tensor; and the shape of one flat
    value of a ragged tensor.
    """

    kind: str
    dtype: Any
    shape: Any


def columns(batch: Mapping[str, Any]) -> Dict[str, InputColumn]:
    """Return the ``InputColumn`` of each input in ``batch``, by name."""
    return {name: _column(value) for name, value in batch.items()}


def _column(value: Any) -> InputColumn:
    if isinstance(value, tf.SparseTensor):
        return InputColumn("sparse", value.dtype, value.shape.ndims)
    if isinstance(value, tf.RaggedTensor):
        is_simple = value.ragged_rank == 1
        return InputColumn(
            "ragged" if is_simple else "deeply ragged", value.dtype, value.flat_values.shape.as_list()[1:]
        )
    if isinstance(value, tf.Tensor):
        return InputColumn("dense", value.dtype, None if value.shape.ndims is None else value.shape.as_list())
    return InputColumn(type(value).__name__, None, None)


class Inputs:
    """The placeholders for some columns of a batch, in the current graph.

    Args:
      found: the columns of the batch, by name.
      names: the names of the columns that need placeholders.

    Attributes:
      batch: the arguments of ``predict``, by name.
      fed: the placeholders, by name.

    Raises:
      JobError: a column is of a kind that cannot be fed, or two placeholders have the same name.
    """

    def __init__(self, job: Job, found: Mapping[str, InputColumn], names: Sequence[str]):
        self._job, self.fed = job, {}  # type: Job, Dict[str, Any]
        self.batch = {name: self._made(name, found[name]) for name in names}

    def _made(self, name: str, column: InputColumn) -> Any:
        expected = f"for serving, a dense, sparse or ragged tensor as {name!r}"
        self._job.check("inputs", expected, column.kind, column.kind in ("dense", "sparse", "ragged"))
        if column.kind == "dense":
            return self._fed(name, column.dtype, _any_number(column.shape))
        values = self._fed(f"{name}_values", column.dtype, [None, *(column.shape if column.kind == "ragged" else [])])
        if column.kind == "ragged":
            return tf.RaggedTensor.from_row_lengths(values, self._fed(f"{name}_row_lengths", tf.int64, [None]))
        indices = self._fed(f"{name}_indices", tf.int64, [None, column.shape])
        return tf.SparseTensor(indices, values, self._fed(f"{name}_dense_shape", tf.int64, [column.shape]))

    def _fed(self, name: str, dtype: Any, shape: Any) -> Any:
        self._job.check("inputs", "inputs of different names for serving", f"two named {name!r}", name not in self.fed)
        self.fed[name] = tf.placeholder(dtype, shape, name=name)
        return self.fed[name]


def _any_number(shape: Any) -> Any:
    """Return the shape of a batch with any number of examples."""
    return shape if not shape else [None, *shape[1:]]


_PYTHON = ("PyFunc", "PyFuncStateless", "EagerPyFunc")  # operations that only this process could run
_BOUND = ("args", "training")


class Model(NamedTuple):
    """The parts of a built ``model``: the columns of its batch, and the shapes of its variables by name.

    ``counted``: names of variables that were created without ``tf.get_variable``.
    """

    columns: Dict[str, InputColumn]
    variables: Dict[str, List[int]]
    counted: List[str]


class Predictor(NamedTuple):
    """The parts of a built ``predict``: its input and output tensors by name, and its embedding tables."""

    inputs: Dict[str, Any]
    outputs: Dict[str, Any]
    tables: FrozenTables


def trained_model(job: Job, task: Task, args: Mapping[str, Any]) -> Model:
    """Build ``model`` in a separate graph, and return its parts.

    Raises:
      JobError: the job's code fails.
    """
    with tf.Graph().as_default():
        tf.train.get_or_create_global_step()
        batch, _ = batch_of(job, "inputs", lambda: job.inputs(task, args))
        batch = {name: value for name, value in batch.items() if name not in (COUNTS, PLACE)}
        sharing = Sharing()
        with job.blame(), tower_on(["/device:CPU:0"]):
            sharing.call(job.with_args(args).model, batch, "tower_0", "tower 0", training=True)
        shapes = {each.op.name: each.shape.as_list() for each in tf.global_variables()}
        return Model(columns(batch), shapes, sharing.counted_names)


def predictor(job: Job, args: Mapping[str, Any], model: Model, tables: FrozenTables) -> Predictor:
    """Build ``predict`` in the current graph, and return its inputs, outputs and tables.

    Args:
      model: the parts of the job's ``model``; ``predict`` may use only its variables.
      tables: the tables in which lookups of ``predict`` find their rows.

    Raises:
      JobError: the job has no ``predict``, or ``predict`` fails, uses other variables, or needs Python code to run.
    """
    if job.predict is None:
        raise JobError(
            f"{job.path}: expected a function predict, found none; write one that takes the parameters of model"
            " except labels, and returns {name: tensor}"
        )
    inputs = Inputs(job, model.columns, _names(job, model))
    tf.train.get_or_create_global_step()
    sharing = Sharing()
    with job.blame(), tower_on(["/device:CPU:0"]), rows_from(tables.look_up), _resources():
        output = sharing.call(_bound(job.predict, args), inputs.batch, "predict", "predict", training=False)
    outputs = _outputs(job, output)
    _refuse_other_variables(job, model, sharing.counted_names)
    _refuse_python(job, tf.get_default_graph())
    return Predictor(inputs.fed, outputs, tables)


def _check(job: Job, expected: str, found: Any, ok: bool) -> None:
    """Refuse the job's ``predict`` unless ``ok``. Raises JobError."""
    if not ok:
        raise JobError(f"{job.place('predict')}: predict: expected {expected}, found {found}")


def _names(job: Job, model: Model) -> List[str]:
    """Return the parameters of ``predict`` that are inputs of the batch."""
    found = inspect.signature(job.predict).parameters.values()  # type: ignore[arg-type]
    wanted = [each for each in found if each.name not in _BOUND]
    named = all(each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in wanted)
    _check(job, "parameters with names of inputs", "one like *args or **kwargs", named)
    needed = [each.name for each in wanted if each.name in model.columns or each.default is each.empty]
    unknown = [name for name in needed if name not in model.columns]
    known = ", ".join(model.columns)
    _check(job, f"only parameters that the batch has ({known})", f"also {unknown}", not unknown)
    return needed


def _bound(predict: Callable[..., Any], args: Mapping[str, Any]) -> Callable[..., Any]:
    """Return ``predict`` with values for the parameters that are not inputs of the batch."""
    asked = inspect.signature(predict).parameters
    values = {name: value for name, value in (("args", args), ("training", False)) if name in asked}
    return lambda **batch: predict(**batch, **values)


def _outputs(job: Job, output: Any) -> Dict[str, Any]:
    named = output if isinstance(output, dict) else {"predictions": output}
    ok = bool(named) and all(isinstance(name, str) and isinstance(each, tf.Tensor) for name, each in named.items())
    _check(job, "a tensor, or {name: tensor}", output, ok)
    return {name: tf.identity(each, name=f"outputs/{name}") for name, each in named.items()}


@contextmanager
def _resources() -> Iterator[None]:
    """Create resource variables inside unless the job requests others: TensorFlow 2 loads no reference variables."""

    def create(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        return next_creator(**{**kwargs, "use_resource": kwargs.get("use_resource") is not False})

    with tf.variable_scope(tf.get_variable_scope(), use_resource=True), tf.variable_creator_scope(create):
        yield


def _refuse_other_variables(job: Job, model: Model, counted: Iterable[str]) -> None:
    for each in tf.global_variables():
        name, found = each.op.name, each.shape.as_list()
        is_known, expected = name in model.variables, model.variables.get(name, [])
        _check(job, "variables that model makes", f"{name!r}, which model does not make", is_known)
        _check(job, f"{name!r} of shape {expected}, as in model", f"one of {found}", expected == found)
    ours, theirs = _groups(counted), _groups(model.counted)
    for group, names in ours.items():
        ok = names == theirs.get(group, names)
        whole = f"all variables that TensorFlow numbers in model ({', '.join(theirs.get(group, []))})"
        step = "make the same layers in predict, or name each layer in both and train again"
        _check(job, whole, f"{', '.join(names)}; {step}", ok)


def _groups(names: Iterable[str]) -> Dict[str, List[str]]:
    """Return names in groups that differ only in the numbers that TensorFlow has counted."""
    groups: Dict[str, List[str]] = defaultdict(list)
    for name in names:
        groups[re.sub(r"(_\d+)+(?=/|$)", "", name)].append(name)
    return dict(groups)


def _refuse_python(job: Job, graph: Any) -> None:
    definition = graph.as_graph_def()
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    found = [node.name for node in nodes if node.op in _PYTHON]
    _check(job, "operations of TensorFlow", f"Python code in the graph, as the operation {found[:1]}", not found)
