"""Measure the trained model on examples that it has not seen."""

from itertools import islice
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from cluster.job import Job
from cluster.metrics import metrics_of
from cluster.model.job_results import SOURCES, batch_of
from cluster.runtime.tf_compat import tf
from cluster.scoring.metric_columns import Columns
from cluster.sharing.variables import Sharing
from cluster.stages import tower_on
from cluster.task import Task
from cluster.towers import stages_of


class Evaluation:
    """The measurement of a job's model on its held-out dataset, with the variables of training.

    Args:
      job: the job, for errors.
      start: the operation that restarts the dataset.
      loss, metrics: the results of ``Job.losses`` for a batch of the dataset.
      counters: the local variables in which metrics of ``tf.metrics`` count.
      size: the number of batches in the dataset, as a tensor of ``tf.data.experimental.cardinality``.
    """

    def __init__(
        self,
        job: Job,
        start: Any,
        loss: Any,
        metrics: Mapping[str, Any],
        counters: Sequence[Any] = (),
        size: Any = None,
    ):
        self._job, self._size = job, size
        measured = metrics_of(metrics)
        means = {"loss": loss, **{name: value for name, value in metrics.items() if name not in measured}}
        counted = {name: pair for name, pair in means.items() if isinstance(pair, tuple)}  # as of ``tf.metrics``
        self._start = tf.group(start, tf.variables_initializer(counters))
        self._sums = {name: _total(value) for name, value in means.items() if name not in counted}
        self._columns = Columns(job, [measured])
        self._counted = {name: value for name, (value, _) in counted.items()}
        updates = [update for _, update in counted.values()]
        self._fetches = [tf.size(loss), self._sums, self._columns.tensors, updates]

    @classmethod
    def build(
        cls, job: Job, task: Task, args: Mapping[str, Any], device: Any, sharing: Optional[Sharing] = None
    ) -> Optional["Evaluation"]:
        """Add the evaluation to the current graph, and return it; return None for a job without ``evaluate``.

        Call this method before training begins, so that a mistake in ``evaluate`` is found then.

        Args:
          device: the device of the model, or a list with the device of each of its stages.
          sharing: the copies of the model whose variables are evaluated; None in a graph without another copy.

        Raises:
          JobError: the job's code fails, or returns values of a wrong kind.
        """
        if job.evaluate is None:
            return None
        evaluate, known = job.evaluate, len(tf.get_collection(SOURCES))
        with job.blame():
            dataset = evaluate(task, args)
        batch, start = batch_of(job, "evaluate", lambda: dataset)
        ok = len(tf.get_collection(SOURCES)) == known
        job.check("evaluate", "a dataset without cluster.shards", "a dataset from cluster.shards", ok)
        before, sharing = _local_variables(), sharing or Sharing()
        with job.blame(), tower_on(stages_of(device)):
            model = job.for_evaluation().model
            output = sharing.call(model, batch, "evaluation", "the evaluation", training=False)
        loss, metrics = job.losses(output)
        counters = [each for key, each in _local_variables().items() if key not in before]
        return cls(job, start, loss, metrics, counters, tf.data.experimental.cardinality(dataset))

    def refuse_endless(self, session: Any, batches: Optional[int]) -> None:
        """Refuse an endless dataset if the evaluation takes all its batches; call this method before training.

        Args:
          batches: the number of batches to take; None for all.

        Raises:
          JobError: the dataset has no end, and ``batches`` is None.
        """
        if batches is None and self._size is not None:
            ok = session.run(self._size) != tf.data.experimental.INFINITE_CARDINALITY
            expected = "a finite dataset: leave out .repeat(), or set train.evaluate_batches"
            self._job.check("evaluate", expected, "a dataset without an end", ok)

    def measures(self, name: str) -> bool:
        """Return whether ``name`` is the loss, a metric, or a slice of a metric."""
        return name in self._sums or name in self._counted or self._columns.measures(name)

    @property
    def names(self) -> List[str]:
        """Return the names of the loss and of all metrics, without the names of slices."""
        return [*self._sums, *self._counted, *self._columns.names]

    def run(self, session: Any, batches: Optional[int] = None) -> Dict[str, float]:
        """Return the values of the loss and of all metrics on the held-out examples, by name.

        The loss, and a metric per example, is the mean over the examples. A metric of ``tf.metrics`` has the value that
        it has after the last batch. An undefined value is NaN, and so is a mean over no examples. Where values of
        ``cluster.metrics`` are not exact, as there are millions of examples, the method prints by how much.

        Args:
          batches: the largest number of batches to take; None for all.

        Raises:
          JobError: a metric is not defined for the examples.
        """
        session.run(self._start)
        examples = 0
        sums = dict.fromkeys(self._sums, 0.0)
        measurement = self._columns.measurement()
        for size, totals, columns, _ in islice(_until_end(session, self._fetches), batches):
            examples += int(size)
            sums = {name: sum_ + float(totals[name]) for name, sum_ in sums.items()}
            measurement.add(columns)
        measured = measurement.measured()
        for note in measured.notes:
            print(note, flush=True)
        found = {name: sum_ / examples if examples else float("nan") for name, sum_ in sums.items()}
        found.update(measured.values if examples else {})
        return {**found, **{name: float(value) for name, value in session.run(self._counted).items()}}


def _total(values: Any) -> Any:
    return tf.reduce_sum(tf.cast(values, tf.float32))


def _local_variables() -> Dict[int, Any]:
    """Find them by identity: comparing variables may mean comparing their values."""
    return {id(each): each for each in tf.local_variables() + tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)}


def _until_end(session: Any, fetches: Any) -> Iterator[Any]:
    while True:
        try:
            yield session.run(fetches)
        except tf.errors.OutOfRangeError:
            return
