"""Check what a job's functions returned: the batch of a dataset, the towers' losses, the optimizer.

An error names what the author may write instead. Copies of the model must not depend on each other: an object that
outlives a call of ``model`` keeps its tensors.
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
    """Return how to name the parts of a batch that is no dictionary, as the end of a sentence."""
    number = len(batch) if isinstance(batch, tuple) else 1
    names = _parameters(job) if len(_parameters(job)) == number else ["x", "y", "z"][:number]
    if len(names) < number:
        return ""
    pairs = ", ".join(f'"{name}": {name}' for name in names)
    return f"; name its parts: data.map(lambda {', '.join(names)}: {{{pairs}}})"


def _parameters(job: Job) -> List[str]:
    return [name for name in inspect.signature(job.model).parameters if name not in ("args", "training")]


def described_batch(batch: Any) -> Any:
    """Return a short description of a batch that is no dictionary."""
    return f"a dataset of tuples of {len(batch)}" if isinstance(batch, tuple) else batch


def batch_of(job: Job, function: str, make: Callable[[], Any], ahead: int = 0) -> Tuple[Dict[str, Any], Any]:
    """Return the next batch of a dataset, and the operation that lets the dataset begin.

    Args:
      function: the job's, named in errors.
      make: calls it.
      ahead: batches that are made ready before their time.

    Raises:
      JobError: the function fails, or returns something else.
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
    """Return the next batch of a task's ``inputs``, its place in a shard, and what lets the dataset begin.

    The place is None for a dataset that is not one of ``cluster.shards``.

    Raises:
      JobError: ``inputs`` fails, or its batches do not have as many examples as they should.
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
    """Return a batch like another, of which all tensors have the number of examples in their shape."""
    return {
        name: tf.placeholder(value.dtype, [size, *value.shape.as_list()[1:]])
        if isinstance(value, tf.Tensor) and value.shape.ndims
        else value
        for name, value in batch.items()
    }


def make_optimizer(job: Job, args: Mapping[str, Any]) -> Any:
    """Make the job's optimizer in the current graph.

    Raises:
      JobError: the function fails, or returns something else, or does more than making an optimizer.
    """
    updates = tf.get_collection_ref(tf.GraphKeys.UPDATE_OPS)
    known = len(updates)
    with job.blame():
        optimizer = job.optimizer(args)
    nowhere = "no operation in tf.GraphKeys.UPDATE_OPS, which is the model's; run it in apply_gradients"
    job.check("optimizer", nowhere, f"{len(updates) - known} beside an optimizer", len(updates) == known)
    named = optimizer if isinstance(optimizer, dict) else {"": optimizer}
    ok = bool(named) and all(isinstance(each, tf.train.Optimizer) for each in named.values())
    expected = "a tf.train.Optimizer, or {beginning of names: tf.train.Optimizer}"
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
    """Return which of TensorFlow's optimizers to make in the place of one of Keras, as the end of a sentence."""
    keras = [type(each).__name__ for each in optimizers if "keras" in type(each).__module__]
    if not keras:
        return ""
    name = f"{_OF_KERAS.get(keras[0], keras[0])}Optimizer"
    instead = name if hasattr(tf.train, name) else "AdamOptimizer"
    return f"; make a tf.train.{instead} in the place of Keras's {keras[0]}"


def refuse_borrowed(sharing: Sharing, results: Sequence[Sequence[Any]], varying: Set[Any]) -> None:
    """Refuse a copy of the model that depends on what another copy computes for itself.

    What was made with a variable is every copy's. So is what depends on no ``varying`` operation: a constant.

    Args:
      results: of each copy its loss and gradients.
      varying: the operations of variables and of batches.

    Raises:
      JobError: there is one; names the line of what it depends on.
    """
    if len(results) == 1:  # the graph of most workers need not be walked
        return
    for index, of_copy in enumerate(results):
        found = sources(of_copy) & sharing.of_others(index)
        borrowed = [op for op in found if ({op} | sources(op.inputs)) & varying]
        if borrowed:
            first = min(borrowed, key=lambda op: str(op.name))
            raise JobError(
                f"{place(first)}: the loss of one tower depends on this operation of another; expected each call of"
                " model to make its own: an object that outlives a call must keep no tensors"
            )
