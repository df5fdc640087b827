"""Check the results of a job's functions: the batch of a dataset, the towers' losses, the optimizer.

An error names the code that the author may write instead. The module also refuses copies of the model that depend on
each other: an object that outlives a call of ``model`` can carry tensors of one copy into the next.
"""

import inspect
from typing import Any, Callable, Dict, List, Mapping, Sequence, Set, Tuple

from cluster.errors import JobError
from cluster.job import Job
from cluster.model.model_state import place
from cluster.runtime.tf_compat import tf
from cluster.sharing.variables import Sharing
from cluster.task import Task
from cluster.updates.grouped import Grouped
from cluster.updates.optimizer_gradients import gathers, refuse_minimize
from cluster.variables.uses import sources

COUNTS, PLACE = "shards/counts", "shards/place"  # in a batch, beside the author's names: see ``cluster.shards``
SOURCES = "shards"  # the collection of what its datasets have their batches from
_OF_KERAS = {"SGD": "GradientDescent", "RMSprop": "RMSProp", "Nadam": "Adam", "Adamax": "Adam", "AdamW": "Adam"}


def named_parts(job: Job, batch: Any) -> str:
    """Return advice for an author whose ``batch`` is no dictionary: how to name its parts, as the end of a sentence.

    The result is "" for more than three parts, unless ``model`` has as many parameters as the batch has parts.
    """
    number = len(batch) if isinstance(batch, tuple) else 1
    names = _parameters(job) if len(_parameters(job)) == number else ["x", "y", "z"][:number]
    if len(names) < number:
        return ""
    pairs = ", ".join(f'"{name}": {name}' for name in names)
    return f"; name its parts: data.map(lambda {', '.join(names)}: {{{pairs}}})"


def _parameters(job: Job) -> List[str]:
    return [name for name in inspect.signature(job.model).parameters if name not in ("args", "training")]


def described_batch(batch: Any) -> Any:
    """Return a short description of ``batch``, for an error, if it is a tuple; return any other batch unchanged."""
    return f"a dataset of tuples of {len(batch)}" if isinstance(batch, tuple) else batch


def batch_of(job: Job, function: str, make: Callable[[], Any], ahead: int = 0) -> Tuple[Dict[str, Any], Any]:
    """Return the next batch of a dataset, and the operation that starts the dataset.

    Args:
      function: the name of the job's function, for errors.
      make: calls the function, and returns its result, the dataset.
      ahead: the number of batches to prepare in advance.

    Raises:
      JobError: the function fails, or does not return a dataset of dictionaries.
    """
    with job.blame():
        dataset = make()
    job.check(function, "a tf.data.Dataset", dataset, isinstance(dataset, tf.data.Dataset))
    iterator = tf.data.make_initializable_iterator(dataset.prefetch(ahead) if ahead else dataset)
    batch = iterator.get_next()
    if not isinstance(batch, dict):
        expected = "a dataset of {name: tensor}" + named_parts(job, batch)
        job.check(function, expected, described_batch(batch), ok=False)
    return batch, iterator.initializer


def next_batch(job: Job, task: Task, args: Mapping[str, Any]) -> Tuple[Dict[str, Any], Any, Any]:
    """Return the next batch of a task's ``inputs``, its position in a shard, and the operation to start the data.

    The position is None for a dataset that is not from ``cluster.shards``.

    Raises:
      JobError: ``inputs`` fails, does not return a dataset of dictionaries, or has batches whose known size is not
        ``task.batch_size``.
    """
    batch, start = batch_of(job, "inputs", lambda: job.inputs(task, args), ahead=2)
    place = batch.pop(PLACE, None)
    for name, value in batch.items():
        if isinstance(value, tf.Tensor):
            size = value.shape.as_list()[:1] if value.shape.ndims else []
            expected = f"batches of task.batch_size = {task.batch_size}"
            job.check("inputs", expected, f"batches of {size} as {name!r}", size in ([None], [task.batch_size]))
    return batch, place, start


def with_known_size(batch: Mapping[str, Any], size: int) -> Dict[str, Any]:
    """Return ``batch`` with placeholders in place of its tensors; the first dimension of each has length ``size``.

    Values that are no tensors, or that are scalars or of unknown rank, stay as they are.
    """
    return {
        name: tf.placeholder(value.dtype, [size, *value.shape.as_list()[1:]])
        if isinstance(value, tf.Tensor) and value.shape.ndims
        else value
        for name, value in batch.items()
    }


def make_optimizer(job: Job, args: Mapping[str, Any]) -> Any:
    """Return the job's optimizer, created in the current graph; a dictionary of optimizers becomes one ``Grouped``.

    Raises:
      JobError: the function ``optimizer`` fails, returns another object, or does more than create an optimizer.
    """
    updates = tf.get_collection_ref(tf.GraphKeys.UPDATE_OPS)
    known = len(updates)
    with job.blame():
        optimizer = job.optimizer(args)
    nowhere = "only an optimizer: tf.GraphKeys.UPDATE_OPS is for the model; run the update in apply_gradients"
    job.check("optimizer", nowhere, f"an optimizer and {len(updates) - known} UPDATE_OPS", len(updates) == known)
    named = optimizer if isinstance(optimizer, dict) else {"": optimizer}
    ok = bool(named) and all(isinstance(each, tf.train.Optimizer) for each in named.values())
    expected = "a tf.train.Optimizer, or {prefix of variable names: tf.train.Optimizer}"
    job.check("optimizer", expected + optimizer_of_tf_train(list(named.values())), optimizer, ok)
    for each in named.values():
        _check_alone(job, each)
    return Grouped(optimizer, f"{job.place('optimizer')}: optimizer") if isinstance(optimizer, dict) else optimizer


def _check_alone(job: Job, optimizer: Any) -> None:
    """Refuse an optimizer that does more than computing and applying gradients."""
    expected = "the optimizer that it wraps: train.sync, mode and backup_workers decide how workers make a step"
    job.check("optimizer", expected, f"a {type(optimizer).__name__}", not gathers(optimizer))
    with job.blame():
        refuse_minimize(optimizer)


def optimizer_of_tf_train(optimizers: List[Any]) -> str:
    """Return the advice to replace a Keras optimizer by one of TensorFlow, as the end of a sentence.

    The result is "" if none of ``optimizers`` is of Keras.
    """
    keras = [type(each).__name__ for each in optimizers if "keras" in type(each).__module__]
    if not keras:
        return ""
    name = f"{_OF_KERAS.get(keras[0], keras[0])}Optimizer"
    instead = name if hasattr(tf.train, name) else "AdamOptimizer"
    return f"; use tf.train.{instead} instead of Keras's {keras[0]}"


def refuse_borrowed(sharing: Sharing, results: Sequence[Sequence[Any]], varying: Set[Any]) -> None:
    """Refuse a copy of the model that depends on operations which another copy created for itself.

    Operations that were created together with a variable belong to every copy. So do operations that depend on no
    ``varying`` operation: they are constants.

    Args:
      results: the loss and the gradients of each copy.
      varying: the operations of variables and of batches.

    Raises:
      JobError: a copy depends on such an operation; the error names the line that created the operation.
    """
    if len(results) == 1:  # the graph of most workers need not be walked
        return
    for index, of_copy in enumerate(results):
        found = sources(of_copy) & sharing.of_others(index)
        borrowed = [op for op in found if ({op} | sources(op.inputs)) & varying]
        if borrowed:
            first = min(borrowed, key=lambda op: str(op.name))
            raise JobError(
                f"{place(first)}: the loss of one tower depends on this operation of another tower; expected each call"
                " of model to make its own operations: an object that outlives a call must keep no tensors"
            )
