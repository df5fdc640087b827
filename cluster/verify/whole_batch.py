"""The batches of all workers as one, and the parts of it that the towers have, one after the other."""

from typing import Any, List, Mapping, NamedTuple, Sequence

from cluster.runtime.server import keep
from cluster.runtime.tf_compat import tf
from cluster.shards import COUNTS
from cluster.verify.digests import flat
from cluster.verify.reader import HERE, Batch, feeding, placeholders, session_config

Arrays = List[Any]  # of a batch's tensors, flat


class Cut(NamedTuple):
    """The whole batch of a step, its parts in the order of workers and towers, and whether all examples count."""

    whole: Arrays
    parts: List[Arrays]
    all_count: bool


class WholeBatch:
    """Join and cut the workers' batches, in a graph and a session of its own.

    Args:
      structures: what the dataset of each worker gives.
      number: of the parts of one worker's batch.

    Attributes:
      whole, part: tensors like those of a whole batch and of a part.
    """

    def __init__(self, structures: Sequence[Mapping[str, Any]], number: int):
        with tf.Graph().as_default() as graph, tf.device(HERE):
            self._fed, batches = zip(*map(placeholders, structures))
            counts = [batch.pop(COUNTS) for batch in batches if COUNTS in batch]
            parts = [part for batch in batches for part in _split(batch, number)]
            self.whole, self.part = _joined(batches), parts[0]
            all_count = tf.reduce_all([tf.reduce_all(tf.equal(each, 1)) for each in counts])
            self._cut = [flat(self.whole), [flat(part) for part in parts], all_count]
        self._session = keep(tf.Session(graph=graph, config=session_config()))

    def cut(self, batches: Sequence[Batch]) -> Cut:
        """Return the whole and the parts of one batch of each worker, each part with what it is given beside it."""
        whole, parts, all_count = self._session.run(self._cut, feeding(self._fed, batches))
        given = [copy for batch in batches for copy in batch.given] or [()] * len(parts)
        parts = [[*part, *copy] for part, copy in zip(parts, given)]
        return Cut(whole if len(parts) > 1 else parts[0], parts, bool(all_count))


def _joined(batches: Sequence[Any]) -> Any:
    return batches[0] if len(batches) == 1 else tf.nest.map_structure(lambda *each: _join(each), *batches)


def _join(values: Sequence[Any]) -> Any:
    if isinstance(values[0], tf.SparseTensor):
        return tf.sparse.concat(0, list(values), expand_nonconcat_dim=True)
    return tf.concat(list(values), 0)


def _split(batch: Any, number: int) -> List[Any]:
    return [tf.nest.map_structure(lambda value, at=at: _part(value, at, number), batch) for at in range(number)]


def _part(value: Any, at: int, number: int) -> Any:
    """Return the part ``at`` of ``number`` equal ones of a tensor, which may be sparse or ragged."""
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
