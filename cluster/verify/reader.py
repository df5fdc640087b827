"""The batches of one worker once more: what its ``inputs`` gives, read in the chief's process."""

from typing import Any, List, Mapping, NamedTuple, Sequence, Tuple

from cluster.job import Job
from cluster.model.device_pool import Member
from cluster.model.model_graph import ModelGraph
from cluster.model.seeds import set_seed
from cluster.runtime.server import keep
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.verify.digests import batch_digest, flat

HERE = "/device:CPU:0"


class Batch(NamedTuple):
    """One batch: the arrays of its tensors, flat, its digest, and what each copy of the model is given beside it."""

    values: List[Any]
    digest: int
    given: Sequence[Sequence[Any]] = ()


class Reader(ModelGraph):
    """The dataset of one worker, in a graph and a session of its own.

    The graph begins as the worker's does: numbers that are drawn from its seed are the same.

    Attributes:
      structure: what the dataset gives, as tensors of that graph.
    """

    def __init__(self, job: Job, task: Task, train: Train, args: Mapping[str, Any]):
        super().__init__(job, task, train, args, [Member(task, [])])
        with tf.Graph().as_default() as graph:
            set_seed(task, args)
            self.step = tf.train.get_or_create_global_step()
            (self.structure,), self.start_input = self._inputs(estimate=False)
            self._batch = [flat(self.structure), batch_digest(self.structure)]
            prepare = [tf.local_variables_initializer(), tf.tables_initializer()]
        self._session = keep(tf.Session(graph=graph, config=session_config()))
        self._session.run(prepare)
        self._session.run(self.start_input)

    def _host(self, task: Task) -> str:
        return HERE

    def next(self) -> Batch:
        """Read the batch of the next step."""
        values, number = self._session.run(self._batch)
        return Batch(values, int(number))


def placeholders(structure: Mapping[str, Any]) -> Tuple[List[Any], Any]:
    """Make, in the current graph, what a batch of the same kind is fed through, flat and as a batch."""
    fed = [tf.placeholder(tensor.dtype, tensor.shape) for tensor in flat(structure)]
    return fed, tf.nest.pack_sequence_as(dict(structure), fed, expand_composites=True)


def session_config() -> Any:
    """Compute as the tasks of a run that is verified do: on CPUs, with one thread, and without rewriting the graph."""
    config = tf.ConfigProto(intra_op_parallelism_threads=1, device_count={"GPU": 0}, allow_soft_placement=True)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config


def feeding(fed: Sequence[Sequence[Any]], batches: Sequence[Batch]) -> Mapping[Any, Any]:
    """Return what to feed to a session, for the placeholders and the batch of each worker."""
    holes = [hole for of_worker in fed for hole in of_worker]
    values = [value for batch in batches for value in batch.values]
    return dict(zip(holes, values))
