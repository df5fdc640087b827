"""One server's record of the gradients that each worker has sent, so that no worker sends one twice.

An accumulator counts gradients, but does not record which worker sent them. A worker that dies between two of its
pushes leaves gradients on some servers only. Its next process reads this record, and sends the missing gradients.

The server records a gradient after it has arrived, without another message from the worker.
"""

from typing import Any, List

from cluster.runtime.server_state import kept
from cluster.runtime.tf_compat import tf
from cluster.steps.exchange import Push

SCOPE = "token_sync"  # of the variables that are not the job's
CLOSED = -1  # in place of a count, while the chief prepares the servers; as a token: join again
_LONG_AGO = 1_700_000_000  # so that a stamp fits into 63 bits until 2057


class ServerNotes:
    """One server's record of pushes, in the graph of one worker. The *place* of a push is its index in ``pushes``.

    Args:
      workers: the number of workers.
      worker: the index of the worker that uses this graph.
      stamp: the stamp (step and era) of this worker's next gradient, a tensor on the worker.

    Attributes:
      given: int64 [pushes * workers] on the server: for each push, the stamp after each worker's last gradient.
    """

    def __init__(self, device: str, pushes: List[Push], workers: int, worker: int, stamp: Any):
        self.device, self.pushes = device, pushes
        server = device.split("task:")[1].split("/")[0]
        self.index = int(server)
        with tf.device(device):
            self._after = tf.identity(stamp) + 1
            self.given = counter(f"given_{server}", [len(pushes) * workers], CLOSED)
            self._own = tf.unstack(tf.range(len(pushes)) * workers + worker)

    @property
    def kept(self) -> List[Any]:
        """Return the variables with this server's record."""
        return [self.given]

    def note_given(self, place: int) -> Any:
        """Make the operation that records this worker's gradient for the push at ``place`` as sent in this step.

        The operation is on the current device. A dead process's late record does not overwrite that of the worker's
        next process.
        """
        return tf.scatter_max(self.given, self._own[place], self._after, use_locking=True)

    def note_all(self, stamp: Any) -> Any:
        """Make the operation that sets the record of all pushes and workers to ``stamp``.

        The next push and the next gradient then belong to the step of ``stamp``.
        """
        with tf.device(self.device):
            stamp = tf.identity(stamp)
            return tf.group(*[tf.assign(notes, tf.fill(notes.shape, stamp)) for notes in self.kept])


def counter(name: str, shape: List[int], value: int) -> Any:
    """Return an int64 variable that belongs to no collection: neither saved nor initialised with the model."""
    with tf.variable_scope(SCOPE):
        return kept(name, shape, tf.int64, value)


def era_after(last: int, seconds: float) -> int:
    """Return a new era, greater than ``last``, for variables that get their values at ``seconds`` since 1970.

    A stamp is the sum of an era and a step. An era is a multiple of 2 ** 33, and no run has so many steps. So every
    stamp of a later era is greater than all stamps of an earlier one.
    """
    return max(int(seconds) - _LONG_AGO, (last >> 33) + 1, 0) << 33


def those(operations: List[Any], chosen: Any) -> List[Any]:
    """Return the operations for which ``chosen``, bool [operations], is True."""
    return [operation for operation, is_chosen in zip(operations, chosen) if is_chosen]
