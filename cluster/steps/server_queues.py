"""One server's record of overlapped steps: the progress of each push, for each worker.

Every worker has a queue of tokens on the server. When the chief has applied a push, each worker gets a token, in the
order of the pushes. So the first token of a step reports that the first push was applied, and so on. A token is the
stamp (step and era) after the step, so a worker recognises a token that was left over from another step.
"""

from typing import Any, List, Sequence

from cluster.runtime.server_state import ManyQueues, take_all
from cluster.runtime.tf_compat import tf
from cluster.steps.exchange import Push
from cluster.steps.server_notes import CLOSED, ServerNotes, counter
from cluster.steps.token_sync import time_after


class ServerQueues(ServerNotes):
    """One server's record of pushes, and its token queues, in the graph of one worker.

    The pushes whose values come back are first in ``pushes``: see ``Exchange.pushes``.

    Args:
      workers: the number of workers.
      receivers: the indices of the workers whose queues this graph uses, its own worker first.
      stamp: the stamp (step and era) of this worker's next gradient, a tensor on the worker.

    Attributes:
      index: the index of the server among all ps.
      applied: int64 [pushes] on the server: for each push, the stamp after the last step that was applied to the push.
      queues: a queue of tokens for each worker of ``receivers``.
    """

    def __init__(self, device: str, pushes: List[Push], workers: int, receivers: Sequence[int], stamp: Any):
        super().__init__(device, pushes, workers, receivers[0], stamp)
        self._tokens: List[Any] = []
        self._began: List[Any] = []
        self._ended: List[Any] = []
        with tf.device(device):
            self.applied = counter(f"applied_{self.index}", [len(pushes)], CLOSED)
            names = [f"token_sync/pushes_of_{self.index}_for_{worker}" for worker in receivers]
            self.queues = [tf.FIFOQueue(-1, tf.int64, [()], shared_name=name) for name in names]

    @property
    def kept(self) -> List[Any]:
        return [self.applied, self.given]

    def wait(self, given: Any, is_timed: bool) -> Any:
        """Make the operation that waits until a push is applied, once the operation ``given`` has sent its gradient.

        Call this method in the order of the pushes. ``is_timed``: whether ``seconds_waited`` counts this wait.

        Returns:
          The token of the push, or a token that was left over from another step, an int64 scalar on the server.
        """
        with tf.device(self.device):
            if is_timed:
                self._began.append(time_after(given))
            with tf.control_dependencies([given, *self._tokens[-1:]]):
                token = self.queues[0].dequeue()
            if is_timed:
                self._ended.append(time_after(token))
        self._tokens.append(token)
        return token

    @property
    def is_timed(self) -> bool:
        """Return whether this worker waits for values of this server."""
        return bool(self._ended)

    def oldest_token(self) -> Any:
        """Return the oldest of a step's tokens, an int64 scalar on the server."""
        with tf.device(self.device):
            return tf.reduce_min(tf.stack(self._tokens))

    def seconds_waited(self) -> Any:
        """Return the time that a step waited for other workers in its timed waits, float64 seconds."""
        with tf.device(self.device):
            return tf.add_n(self._ended) - tf.add_n(self._began)

    def drain(self) -> Any:
        """Make the operation that drops this worker's tokens on this server."""
        with tf.device(self.device):
            return take_all(self.queues[0])


class ChiefServerQueues(ServerQueues):
    """A ``ServerQueues`` in the graph of the chief, which applies the pushes.

    Args:
      many: fills and empties the queues of all workers at once.

    Attributes:
      last_sent: a list with the step's last operation that sends tokens; empty if this server sends no values.
    """

    def __init__(
        self, device: str, pushes: List[Push], workers: int, receivers: Sequence[int], stamp: Any, many: ManyQueues
    ):
        super().__init__(device, pushes, workers, receivers, stamp)
        self.last_sent: List[Any] = []
        self._many = many
        with tf.device(device):
            self._handles = tf.stack([queue.queue_ref for queue in self.queues])
            self._token = tf.reshape(self._after, [1])
            self._places = tf.unstack(tf.range(len(pushes)))

    def note_applied(self, place: int, after: Any) -> Any:
        """Make the operation that records the push at ``place`` as applied in this step, ``after`` its update."""
        with tf.device(self.device), tf.control_dependencies([after]):
            return tf.scatter_update(self.applied, self._places[place], self._after)

    def send_token(self, after: Any) -> None:
        """Make the operation that sends every worker the token of a push, once ``after`` has prepared its values.

        Call this method in the order of the pushes. It puts the operation into ``last_sent``.
        """
        with tf.device(self.device), tf.control_dependencies([after, *self.last_sent]):
            self.last_sent = [self._many.put(self._handles, self._token)]

    def release(self) -> Any:
        """Make the operation that releases all workers that wait for tokens of this server.

        The operation sends each worker as many tokens ``CLOSED`` as a step has tokens. So it releases workers that wait
        now or later in this step. A worker that gets such a token fetches the servers' values when the step is over.
        """
        with tf.device(self.device):
            return self._many.put(self._handles, tf.fill([count_returning(self.pushes)], tf.constant(CLOSED, tf.int64)))

    def note_applied_at(self, places: Any) -> Any:
        """Make the operation that records the pushes at ``places``, int32 [n], as applied."""
        with tf.device(self.device):
            return tf.scatter_update(self.applied, places, tf.fill(tf.shape(places), self._after))

    def drain_all(self) -> Any:
        """Make the operation that drops the tokens of all workers on this server."""
        with tf.device(self.device):
            return self._many.empty(self._handles)


def count_returning(pushes: Sequence[Push]) -> int:
    """Count the pushes whose values come back: for each of them, a worker's step waits for one token of the server."""
    return sum(push.bucket is not None for push in pushes)
