"""Measure the trained model on examples that it has not seen."""

from itertools import islice
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from cluster.job import Job
from cluster.model.ranking import area_under_curve
from cluster.runtime.tf_compat import tf
from cluster.sharing.variables import Sharing
from cluster.stages import tower_on
from cluster.task import Task
from cluster.towers import stages_of


class Evaluation:
    """Run the job's held-out dataset through the job's model, with the variables of training.

    Args:
      start: the operation that restarts the dataset.
      metrics: as ``Job.losses`` returns them.
      counters: the local variables in which metrics of ``tf.metrics`` count.
    """

    def __init__(self, start: Any, loss: Any, metrics: Mapping[str, Any], counters: Sequence[Any] = ()):
        values = {"loss": loss, **metrics}
        pairs = {name: value for name, value in values.items() if isinstance(value, tuple)}
        counted = {name: pair for name, pair in pairs.items() if _is_counted(pair)}
        self._start = tf.group(start, tf.variables_initializer(counters))
        self._sums = {name: _total(value) for name, value in values.items() if name not in pairs}
        self._ranked = {name: pair for name, pair in pairs.items() if name not in counted}
        self._counted = {name: value for name, (value, _) in counted.items()}
        self._fetches = [tf.size(loss), self._sums, self._ranked, [update for _, update in counted.values()]]

    @classmethod
    def build(
        cls, job: Job, task: Task, args: Mapping[str, Any], device: Any, sharing: Optional[Sharing] = None
    ) -> Optional["Evaluation"]:
        """Add the evaluation to the current graph; None for a job without ``evaluate``.

        It is built before training begins, so that a mistake in it is found then.

        Args:
          sharing: of the towers whose variables are evaluated; None in a graph that has no other copy of the model.

        Raises:
          JobError: the job's code fails, or does not return what it should.
        """
        if job.evaluate is None:
            return None
        with job.blame():
            dataset = job.evaluate(task, args)
        job.check("evaluate", "a tf.data.Dataset", dataset, isinstance(dataset, tf.data.Dataset))
        iterator = tf.data.make_initializable_iterator(dataset)
        batch = iterator.get_next()
        job.check("evaluate", "a dataset of {name: tensor}", batch, isinstance(batch, dict))
        before, sharing = _local_variables(), sharing or Sharing()
        with job.blame(), tower_on(stages_of(device)):
            model = job.for_evaluation().model
            output = sharing.call(model, batch, "evaluation", "the evaluation", training=False)
        loss, metrics = job.losses(output)
        counters = [each for key, each in _local_variables().items() if key not in before]
        return cls(iterator.initializer, loss, metrics, counters)

    def run(self, session: Any, batches: Optional[int] = None) -> Dict[str, float]:
        """Return the mean over the held-out examples of the loss and of each metric.

        For a metric that is a pair of label and score, the result is the area under the ROC curve. The method keeps
        both for
        it until the end: 5 bytes per example if the score is of float32. The method reads a metric of ``tf.metrics`` at
        the end.

        Args:
          batches: takes at most so many of them; all if it is None.
        """
        session.run(self._start)
        examples = 0
        sums = dict.fromkeys(self._sums, 0.0)
        kept: Dict[str, List[Tuple[Any, Any]]] = {name: [] for name in self._ranked}
        for size, totals, pairs, _ in islice(_until_end(session, self._fetches), batches):
            examples += int(size)
            sums = {name: sum_ + float(totals[name]) for name, sum_ in sums.items()}
            for name, (label, score) in pairs.items():
                kept[name].append((label > 0.5, score))
        found = {name: sum_ / max(examples, 1) for name, sum_ in sums.items()}
        for name, parts in kept.items() if examples else ():
            found[name] = area_under_curve(*map(np.concatenate, zip(*parts)))
        return {**found, **{name: float(value) for name, value in session.run(self._counted).items()}}


def _total(values: Any) -> Any:
    return tf.reduce_sum(tf.cast(values, tf.float32))


def _is_counted(pair: Tuple[Any, ...]) -> bool:
    """Return whether a pair is a value and its update, as ``tf.metrics`` returns them.

    Any other pair is a label and a score per example.
    """
    return bool(pair[0].shape.ndims == 0)


def _local_variables() -> Dict[int, Any]:
    """Find them by identity: comparing variables may mean comparing their values."""
    return {id(each): each for each in tf.local_variables() + tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)}


def _until_end(session: Any, fetches: Any) -> Iterator[Any]:
    while True:
        try:
            yield session.run(fetches)
        except tf.errors.OutOfRangeError:
            return
