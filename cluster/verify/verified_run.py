"""A copy of the verified run in the chief's process: its job, the batch of every worker, and all batches as one.

Each batch is read from its worker's ``inputs``. A step of plain TensorFlow takes the batches as one whole batch, or as
the parts of the towers, one after the other.
"""

import functools
import importlib.util
import sys
from typing import Any, List, Mapping, NamedTuple, Sequence, Tuple

from cluster.job import Job
from cluster.model.job_results import COUNTS, next_batch
from cluster.model.model_graph import set_seed
from cluster.runtime.server import keep
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.verify.digests import DigestReport, batch_digest, flat

HERE = "/device:CPU:0"
Arrays = List[Any]  # of a batch's tensors, flat


class VerifiedRun(NamedTuple):
    """The job that a run trains, and the towers that train the job.

    ``job`` has its ``args`` bound. ``tasks`` are the workers, the chief first. Each worker has ``devices``, one for
    each tower, and the ``batch_size`` of its towers together.
    """

    job: Job
    train: Train
    args: Mapping[str, Any]
    tasks: Sequence[Task]
    devices: Sequence[str]

    @property
    def parts(self) -> int:
        """Return the number of parts of one worker's batch; each part is the batch of one copy of the model."""
        return len(self.devices) * self.train.accumulate

    def fresh_job(self) -> Job:
        """Return the job from a new execution of its file.

        A file may create objects once, such as layers, that fit one graph only. The method does not execute the modules
        again that the file imports. If the job's functions do not come from one file, it uses them unchanged.
        """
        module = sys.modules.get(getattr(_function(self.job.model), "__module__", ""))
        spec = getattr(module, "__spec__", None)
        own = {"inputs": self.job.inputs, "model": self.job.model, "optimizer": self.job.optimizer}
        is_file = all(getattr(module, name, None) is _function(each) for name, each in own.items())
        if spec is None or spec.loader is None or not is_file:
            return self.job
        again = importlib.util.module_from_spec(spec)
        with self.job.blame():
            spec.loader.exec_module(again)
        return Job.from_module(again).with_args(self.args)


def _function(given: Any) -> Any:
    while isinstance(given, functools.partial):
        given = given.func
    return given


class BatchReader:
    """The dataset of one worker, in a separate graph and session.

    The graph begins like the worker's graph: so it draws the same random numbers from its seed.

    Attributes:
      structure: a batch of the dataset, as tensors of this graph.
    """

    def __init__(self, run: VerifiedRun, task: Task):
        job = run.fresh_job()  # outside the graph, as on a worker: objects of the job's file are not part of the graph
        with tf.Graph().as_default() as graph:
            set_seed(task, run.args)
            tf.train.get_or_create_global_step()
            with tf.device(HERE):
                self.structure, _, start = next_batch(job, task, run.args)
            self._batch = [flat(self.structure), batch_digest(self.structure)]
            prepare = [tf.local_variables_initializer(), tf.tables_initializer()]
        self._session = session_on(graph)
        self._session.run(prepare)
        self._session.run(start)

    def next(self) -> Tuple[Arrays, int]:
        """Read the batch of the next step; return the arrays of its tensors, and its digest."""
        values, number = self._session.run(self._batch)
        return values, int(number)


def placeholders(structure: Mapping[str, Any]) -> Tuple[List[Any], Any]:
    """Create, in the current graph, placeholders for a batch like ``structure``; return them flat, and as a batch."""
    fed = [tf.placeholder(tensor.dtype, tensor.shape) for tensor in flat(structure)]
    return fed, tf.nest.pack_sequence_as(dict(structure), fed, expand_composites=True)


def session_on(graph: Any) -> Any:
    """Return a session that computes like the tasks of a verified run.

    The tasks compute on CPUs, with one thread, and without rewriting the graph.
    """
    config = tf.ConfigProto(intra_op_parallelism_threads=1, device_count={"GPU": 0}, allow_soft_placement=True)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return keep(tf.Session(graph=graph, config=config))


def feeding(fed: Sequence[Sequence[Any]], reports: Sequence[DigestReport]) -> Mapping[Any, Any]:
    """Return the feeds that fill the placeholders ``fed`` of each worker with the batch of its report."""
    holes = [hole for of_worker in fed for hole in of_worker]
    values = [value for report in reports for value in report.batch]
    return dict(zip(holes, values))


class CutBatch(NamedTuple):
    """The whole batch of a step, its parts in the order of workers and towers, and whether all examples count."""

    whole: Arrays
    parts: List[Arrays]
    all_count: bool


class WholeBatch:
    """A graph and session that join the workers' batches, and cut them into parts.

    Args:
      structures: for each worker, the structure of a batch from its dataset.
      number: the number of parts of one worker's batch.

    Attributes:
      whole, part: a whole batch and its first part, as tensors, for the structure of each.
    """

    def __init__(self, structures: Sequence[Mapping[str, Any]], number: int):
        with tf.Graph().as_default() as graph, tf.device(HERE):
            self._fed, batches = zip(*map(placeholders, structures))
            counts = [batch.pop(COUNTS) for batch in batches if COUNTS in batch]
            parts = [part for batch in batches for part in _split(batch, number)]
            self.whole, self.part = _joined(batches), parts[0]
            all_count = tf.reduce_all([tf.reduce_all(tf.equal(each, 1)) for each in counts])
            self._cut = [flat(self.whole), [flat(part) for part in parts], all_count]
        self._session = session_on(graph)

    def cut(self, reports: Sequence[DigestReport]) -> CutBatch:
        """Return the batches in ``reports`` as one whole batch, and its parts, each followed by its given values."""
        whole, parts, all_count = self._session.run(self._cut, feeding(self._fed, reports))
        given = [copy for report in reports for copy in report.given] or [[] for _ in parts]
        parts = [[*part, *copy] for part, copy in zip(parts, given)]
        return CutBatch(whole if len(parts) > 1 else parts[0], parts, bool(all_count))


def _joined(batches: Sequence[Any]) -> Any:
    return batches[0] if len(batches) == 1 else tf.nest.map_structure(lambda *each: _join(each), *batches)


def _join(values: Sequence[Any]) -> Any:
    if isinstance(values[0], tf.SparseTensor):
        return tf.sparse.concat(0, list(values), expand_nonconcat_dim=True)
    return tf.concat(list(values), 0)


def _split(batch: Any, number: int) -> List[Any]:
    return [tf.nest.map_structure(lambda value, at=at: _part(value, at, number), batch) for at in range(number)]


def _part(value: Any, at: int, number: int) -> Any:
    """Return the part ``at`` of ``number`` equal parts of a tensor, which may be sparse or ragged."""
    if number == 1:
        return value
    if isinstance(value, tf.SparseTensor):
        rows = value.dense_shape[0] // number
        begin = tf.concat([[at * rows], tf.zeros_like(value.dense_shape[1:])], 0)
        return tf.sparse.slice(value, begin, tf.concat([[rows], value.dense_shape[1:]], 0))
    if isinstance(value, tf.RaggedTensor):
        rows = value.nrows() // number
        return value[at * rows : (at + 1) * rows]
    return tf.split(value, number)[at]
