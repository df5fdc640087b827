"""A strictly synchronous step in which pushes and pulls run at the same time.

A network card sends while it receives. In a step that pushes every gradient and then pulls every variable it
does one at a time, and takes twice as long as it must. Here each load goes its own way, on its server:

    worker i   pushes load j
    chief      takes the sum of N gradients from its accumulator            (blocks until N came)
    chief      updates its variables, then puts a token into each worker's queue of that server
    worker i   fetches the new values into its copies, when it has its token for load j

and the order makes it quick. All workers push the loads of a server in the same order, and load j only
when the values of load j - WINDOW have come back (``cluster.steps.send_window``). The first loads are
those whose gradients backpropagation knows first, so pushing begins while it is still at work. Tokens
come in that order too, so that one queue of a server is enough for a worker.

The order is also why this is strict: the values of load j that a worker computes step t + 1 with are those of
step t, as it waits for their token, and nothing changes them until it has given its gradient of step t + 1.

The idea of slices in order with a bound on what is under way is that of Y. Peng et al., "A Generic Communication
Scheduler for Distributed DNN Training Acceleration", SOSP 2019 (ByteScheduler), and A. Jayarajan et al.,
"Priority-based Parameter Propagation for Distributed DNN Training", SysML 2019.

Each server notes for every load of its own the stamp of the last step that was applied, and for every worker
the stamp of the last gradient that it gave. ``cluster.steps.overlapped_worker`` has the rules made of them, for
a worker or a chief that dies somewhere between.
"""

from typing import Any, Dict, List, Sequence

from cluster.runtime.server_state import ManyQueues
from cluster.runtime.tf_compat import tf
from cluster.steps.exchange import Exchange, Load
from cluster.steps.send_window import WINDOW, Turns
from cluster.steps.server_queues import ChiefsLane, Lane
from cluster.steps.token_sync import Meeting, TokenSyncOptimizer
from cluster.updates.incremental_apply import Piecewise


class OverlappedSyncOptimizer(TokenSyncOptimizer):
    """A ``TokenSyncOptimizer`` that exchanges its loads one by one.

    Available after ``apply_gradients``, beside what that has:
      lanes: each server's part of a step.
      give: one operation for each load, in the order of ``lanes``: gives the load's gradient when the load's turn
        comes.
      at_once: what to feed to a session for loads that are given without waiting for their turns.
      finish_now: one for each load: takes, updates, notes the load as applied, and sends no token (chief only).
      let_go: releases all workers from waiting for tokens in the rest of the step (chief only).
      settle: one for each lane: notes the loads at ``places`` of it, fed to it, which were taken before (chief only).
      conclude: after all loads were applied: counts the step and sends tokens for it (chief only).
    """

    def __init__(self, opt: Any, num_workers: int, worker_index: int, exchange: Exchange):
        super().__init__(opt, num_workers, worker_index, exchange=exchange)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        """Make one whole step of this worker; see ``TokenSyncOptimizer``."""
        self._global_step = global_step
        self._make_state(global_step)
        self._loads = self._exchange.loads(grads_and_vars)
        self._next_stamp = self._stamp + 1
        self.lanes = self._lanes()
        self._turns = Turns()
        self._pieces = Piecewise(self._opt)
        self.taken = []
        self.finish_now: List[Any] = []
        self.give = [self._exchange_load(lane, place) for lane in self.lanes for place in range(len(lane.loads))]
        self.at_once = self._turns.at_once
        counted = self._count(self.give)
        self._make_own()
        finish = self._make_chief() if self.is_chief else []
        with tf.control_dependencies([counted, *finish]):
            token = self._wait_for_token()
        lanes = [lane for lane in self.lanes if lane.is_timed]
        self.waited = tf.reduce_mean(tf.stack([lane.waited() for lane in lanes]))
        self.behind = self._next_stamp - tf.reduce_min(tf.stack([lane.oldest_token() for lane in lanes]))
        with tf.control_dependencies([self.copies.put(self._turns.values, self._next_stamp)]):
            return tf.identity(token)

    def _lanes(self) -> Sequence[Lane]:
        of: Dict[str, List[Load]] = {}
        for load in self._loads:
            of.setdefault(load.device, []).append(load)
        common = (self.num_workers, self._told, self._stamp)
        if not self.is_chief:
            return [Lane(device, loads, *common) for device, loads in of.items()]
        many = ManyQueues(self.num_workers)
        return [ChiefsLane(device, loads, *common, many) for device, loads in of.items()]

    @property
    def _led(self) -> List[ChiefsLane]:
        """All lanes on the chief, and none on another worker."""
        return [lane for lane in self.lanes if isinstance(lane, ChiefsLane)]

    def _exchange_load(self, lane: Lane, place: int) -> Any:
        """Exchange one load with its server; return the operation that notes its gradient as given."""
        load = lane.loads[place]
        accumulator = self._accumulator(load)
        if isinstance(lane, ChiefsLane):
            self._make_update(lane, place, accumulator)
        if load.parcel is None:
            return self._given(lane, place, accumulator, load.grad)
        given = self._given(lane, place, accumulator, self._turns.wait(load).grad)
        # The waits of loads that are not under way together add up to what the step has waited.
        token = lane.wait(given, is_timed=place % WINDOW == 0)
        sent = self._exchange.laid_out(load.parcel, [token])
        self._turns.came_back(load, self._exchange.came(load.parcel, sent))
        return given

    def _given(self, lane: Lane, place: int, accumulator: Meeting, grad: Any) -> Any:
        given = accumulator.give(grad, self._stamp)
        with tf.device(lane.device), tf.control_dependencies([given]):
            return lane.note_given(place)

    def _make_update(self, lane: ChiefsLane, place: int, accumulator: Meeting) -> None:
        taken = accumulator.take()
        self.taken.append(taken)
        with tf.device(lane.device):
            updated = self._pieces.update(accumulator.unpacked(taken))
        parcel = lane.loads[place].parcel
        if parcel is not None:
            updated = self._exchange.lay_out(parcel, updated)
            lane.tell(updated)
        self.finish_now.append(lane.note_applied(place, updated))

    def _apply(self) -> Any:
        self.conclude = self._concluded([self._pieces.finish_alone()])
        told = [each for lane in self._led for each in lane.told]
        with tf.control_dependencies([tf.group(*self.finish_now, *told)]):
            return self._pieces.finish()

    def _make_own(self) -> None:
        super()._make_own()
        self.drain = tf.group(self.drain, *[lane.drained() for lane in self.lanes])

    def _make_chief(self) -> List[Any]:
        finish = super()._make_chief()
        self.drain_all = tf.group(self.drain_all, *[lane.all_drained() for lane in self._led])
        self.let_go = tf.group(*[lane.let_go() for lane in self._led])
        self.recall = tf.group(self.recall, self.let_go)
        self.places = [tf.placeholder(tf.int32, [None]) for _ in self._led]
        self.settle = [lane.settled(places) for lane, places in zip(self._led, self.places)]
        noted = [lane.all_noted(self._opening_stamp) for lane in self._led]
        self.set_stamps = tf.group(self.set_stamps, *noted, *self._exchange.cleared())
        return finish
