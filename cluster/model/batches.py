"""The batch of a dataset that a job's function returned, in the current graph."""

from typing import Any, Callable, Dict, Tuple

from cluster.job import Job
from cluster.model.remedies import described, named_parts
from cluster.runtime.tf_compat import tf


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
        job.check(function, expected, described(batch), ok=False)
    return batch, iterator.initializer
