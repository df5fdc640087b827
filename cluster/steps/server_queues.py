"""One server's record of overlapped steps: the progress of each push, for each worker.

Every worker has a queue of tokens on the server. When the chief has applied a push, each worker gets a token, in the
order of the pushes. So the first token of a step reports that the first push was applied, and so on. A token is the
stamp after the step, so a worker recognises a token that was left over from another step.
"""

from typing import Any, List, Sequence

from cluster.runtime.server_state import ManyQueues, take_all
from cluster.runtime.tf_compat import tf
from cluster.steps.exchange import Push
from cluster.steps.server_notes import CLOSED, ServerNotes, counter
from cluster.steps.token_sync import time_after


class ServerQueues(ServerNotes):
    """The notes of one server, and its queues, in the graph of one worker.

    The pushes whose values come back are the first: see ``Exchange.pushes``.

    Args:
      workers: how many there are.
      receivers: those whose queues this graph uses, its own worker first.
      stamp: of this worker's gradient, on the worker.

    Attributes:
      index: of the server, among all ps.
      applied: int64 [pushes] on the server, for each push the stamp after the last step that was applied to it.
      queues: of tokens, for each worker of ``receivers``.
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
        """Wait, once a gradient is ``given``, until the push is applied. Ask in the order of the pushes.

        Returns:
          The token for it, or one that was left over, an int64 scalar on the server.
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
        """Return the time that a step waited for others at timed pushes, in float64 seconds."""
        with tf.device(self.device):
            return tf.add_n(self._ended) - tf.add_n(self._began)

    def drain(self) -> Any:
        """Make the operation that drops this worker's tokens."""
        with tf.device(self.device):
            return take_all(self.queues[0])


class ChiefServerQueues(ServerQueues):
    """A ``ServerQueues`` in the graph of the chief, which applies the pushes.

    Args:
      many: fills and empties the queues of as many workers at once.

    Attributes:
      last_sent: the last operation of each step that gives tokens; none if no values come back.
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
        """Make the operation that notes, ``after`` its update, that a push was applied in this step."""
        with tf.device(self.device), tf.control_dependencies([after]):
            return tf.scatter_update(self.applied, self._places[place], self._after)

    def send_token(self, after: Any) -> None:
        """Send every worker the token of a push ``after`` the push's values are ready.

        Call this method in the order of the pushes.
        """
        with tf.device(self.device), tf.control_dependencies([after, *self.last_sent]):
            self.last_sent = [self._many.put(self._handles, self._token)]

    def release(self) -> Any:
        """Make the operation that releases all workers that wait for tokens of this server.

        The operation releases workers that wait now or later in this step: no token is left to wait for. A worker that
        gets such a token, ``CLOSED``, fetches the servers' values when the step is over.
        """
        with tf.device(self.device):
            return self._many.put(self._handles, tf.fill([count_returning(self.pushes)], tf.constant(CLOSED, tf.int64)))

    def note_applied_at(self, places: Any) -> Any:
        """Make the operation that notes pushes as applied at ``places``, int32 [n]."""
        with tf.device(self.device):
            return tf.scatter_update(self.applied, places, tf.fill(tf.shape(places), self._after))

    def drain_all(self) -> Any:
        """Make the operation that drops the tokens of all workers."""
        with tf.device(self.device):
            return self._many.empty(self._handles)


def count_returning(pushes: Sequence[Push]) -> int:
    """Count those of a server's pushes whose values come back: for so many tokens a worker waits in a step."""
    return sum(push.bucket is not None for push in pushes)
