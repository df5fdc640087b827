"""The tensors of a model's metrics in its graph: each only once, even if several metrics use it."""

from typing import Any, Dict, List, Mapping, Sequence, Tuple

from cluster.job import Job
from cluster.metrics import Metric
from cluster.runtime.tensors import identities
from cluster.runtime.tf_compat import tf
from cluster.scoring.measures import Measurement, Reading

MOST_VALUES = 1000  # of all metrics and their slices


class Columns:
    """The columns of all metrics: one tensor for each column, joined over all parts of a batch.

    Args:
      parts: the metrics that the model returned for each part of the batch, at least one part.

    Attributes:
      tensors: the tensors to fetch, one [n] for each column.

    Raises:
      JobError: the metrics differ from part to part, are too many, or have tensors of unsuitable shape or type.
    """

    def __init__(self, job: Job, parts: Sequence[Mapping[str, Metric]]):
        self._job, self._parts = job, parts
        self.tensors: List[Any] = []
        self._known: Dict[Tuple[int, str], int] = {}
        first = parts[0]
        for other in parts[1:]:
            same = _shape_of(other) == _shape_of(first)
            job.check("model", "the same metrics for each tower", f"{[*first]} and {[*other]}", same)
        most = sum(1 + metric.most + bool(metric.most) for metric in first.values())
        job.check("model", f"at most {MOST_VALUES} metrics with their slices", most, most <= MOST_VALUES)
        self._readings = {name: self._reading(name, metric) for name, metric in first.items()}

    @property
    def names(self) -> List[str]:
        """Return the names of the metrics."""
        return list(self._readings)

    def measures(self, name: str) -> bool:
        """Return whether ``name`` is the name of a metric, or may be the name of a metric's slice."""
        sliced = [metric for metric, reading in self._readings.items() if reading.most]
        return name in self._readings or any(name.startswith(f"{metric}/") for metric in sliced)

    def measurement(self) -> Measurement:
        """Return a measurement of all metrics, without an example yet; it takes the fetched tensors."""
        return Measurement(self._job.place("model"), self._readings)

    def _reading(self, name: str, metric: Metric) -> Reading:
        return Reading(metric.kind, {part: self._column(name, part) for part in metric.tensors}, metric.most)

    def _column(self, name: str, part: str) -> int:
        tensors = [metrics[name].tensors[part] for metrics in self._parts]
        key = id(tensors[0]), part if part in ("label", "group", "slice") else "number"
        if key not in self._known:
            self._known[key] = len(self.tensors)
            self.tensors.append(_concat([self._checked(name, part, tensor) for tensor in tensors]))
        return self._known[key]

    def _checked(self, name: str, part: str, given: Any) -> Any:
        with self._job.blame():
            tensor = tf.convert_to_tensor(given)
        expected = f"a {part} of shape [batch] for the metric {name}"
        self._job.check("model", expected, tensor, tensor.shape.ndims in (None, 1))
        kind = tensor.dtype
        if part in ("group", "slice"):
            ok = kind.is_integer or kind == tf.string or (kind == tf.bool and part == "slice")
            self._job.check("model", f"a {part} of integers or strings for the metric {name}", tensor, ok)
        else:
            ok = kind.is_integer or kind.is_floating or kind == tf.bool
            self._job.check("model", f"a {part} of numbers for the metric {name}", tensor, ok)
        return _converted(part, tensor)


def _shape_of(metrics: Mapping[str, Metric]) -> Any:
    return {name: (metric.kind, sorted(metric.tensors), metric.most) for name, metric in metrics.items()}


def _converted(part: str, tensor: Any) -> Any:
    if part == "slice":
        return tensor
    if part == "group":
        return identities(tensor)
    if tensor.dtype == tf.float64:
        return tensor
    return tf.cast(tensor, tf.float32 if part == "label" or tensor.dtype.is_floating else tf.float64)


def _concat(tensors: Sequence[Any]) -> Any:
    return tf.identity(tensors[0]) if len(tensors) == 1 else tf.concat(tensors, 0)
