"""What the trained model is worth on examples that it has not seen."""

from typing import Any, Dict, Mapping, Optional

import numpy as np

from cluster.engine import tf
from cluster.job import Job
from cluster.ranking import area_under_curve
from cluster.stages import tower_on
from cluster.task import Task
from cluster.towers import refuse_new_variables, stages_of


class Evaluation:
    """The job's held-out dataset through the job's model, with the variables of training."""

    def __init__(self, start: Any, loss: Any, metrics: Mapping[str, Any]):
        values = {"loss": loss, **metrics}
        self._start = start
        self._size = tf.size(loss)
        self._pairs = {name: value for name, value in values.items() if isinstance(value, tuple)}
        self._totals = {name: _total(value) for name, value in values.items() if name not in self._pairs}

    @classmethod
    def build(
        cls, job: Job, task: Task, args: Mapping[str, Any], device: Any, reuse: bool = True
    ) -> Optional["Evaluation"]:
        """Adds the evaluation to the chief's graph; None for a job without ``evaluate``.

        It is built before training begins, so that a mistake in it is found then.

        Raises:
          JobError: the job's code fails, or does not return what it should.
        """
        if job.evaluate is None:
            return None
        with job.blamed():
            dataset = job.evaluate(task, args)
        job.check("evaluate", "a tf.data.Dataset", dataset, isinstance(dataset, tf.data.Dataset))
        iterator = tf.data.make_initializable_iterator(dataset)
        batch = iterator.get_next()
        scope = tf.variable_scope(tf.get_variable_scope(), reuse=reuse)
        with job.blamed(), tower_on(stages_of(device)), scope, tf.name_scope("evaluation"):
            known = len(tf.global_variables())
            output = job.for_evaluation().model(**batch)
            if reuse:
                refuse_new_variables("the evaluation", known)
        loss, metrics = job.losses(output)
        return cls(iterator.initializer, loss, metrics)

    def run(self, session: Any) -> Dict[str, float]:
        """The mean over all held-out examples of the loss and of each metric.

        Of a metric that is a pair of label and score the area under the ROC curve, for which
        both are kept until the end: 8 bytes per example.
        """
        session.run(self._start)
        batches = list(_until_end(session, [self._size, self._totals, self._pairs]))
        examples = sum(int(size) for size, _, _ in batches)
        found = {name: sum(float(totals[name]) for _, totals, _ in batches) / max(examples, 1) for name in self._totals}
        for name in self._pairs if batches else ():
            labels, scores = (np.concatenate([pairs[name][part] for _, _, pairs in batches]) for part in (0, 1))
            found[name] = area_under_curve(labels, scores)
        return found


def _total(values: Any) -> Any:
    return tf.reduce_sum(tf.cast(values, tf.float32))


def _until_end(session: Any, fetches: Any) -> Any:
    while True:
        try:
            yield session.run(fetches)
        except tf.errors.OutOfRangeError:
            return
