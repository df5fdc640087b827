"""Windows of local steps: a worker trains several steps on its own copy, then sends the servers the sum of updates.

This is DOWNPOUR with n_fetch = n_push = n (Dean et al., "Large Scale Distributed Deep Networks", NIPS 2012). A window
has ``train.local_steps`` steps of plain gradient descent, in these runs of a session:

    local step   the worker's variables := the fetched values - the sum
                 the sum += learning rate * gradient
    end          the servers' variables -= the sum, and the global step += the number of steps
                 the fetched values := the servers' new ones, and the sum := 0

So if one worker trains alone, the servers have the worker's own values after each window. The servers count the steps
of a window in the global step only when they receive its sum. If a worker dies, its whole window is lost, and was never
counted. A window ends early when training ends, or when the chief stops all workers to save: every second, a worker
checks for both.
"""

import contextlib
import time
from dataclasses import replace
from typing import Any, Callable, Collection, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cluster.model.model_graph import ModelGraph
from cluster.runtime.gradients import clip, global_norm
from cluster.runtime.server_state import kept
from cluster.runtime.tf_compat import tf
from cluster.steps.async_worker import AsyncWorker
from cluster.steps.base_worker import HoldGate, StepParts
from cluster.task import NO_LIMIT
from cluster.updates.incremental_apply import is_elementwise
from cluster.variables.masters import plain_name
from cluster.variables.profile import VariableProfile

SLOWER = 5.0  # than the longest exchange so far: what one may take
LOOK_S = 1.0  # how often a worker looks within a window whether training has ended, or the chief holds all workers


class LocalParts(NamedTuple):
    """The parts of the worker's graph that local steps need.

    ``steps`` is the number of steps in a window. ``rate`` is the learning rate at the worker's own global step.
    ``load`` takes values, by the names of pieces, and a number. It makes the operation that assigns the values to the
    worker's variables, and the number to its own global step.
    """

    steps: int
    rate: Any
    load: Callable[[Mapping[str, Any], Any], Any]


class LocalStepsWorker(AsyncWorker):
    """A worker that takes local steps in windows; a window ends with one asynchronous step, which applies the sum.

    ``step`` returns the newest global step of the servers that this worker knows.
    """

    fetches_within = False  # a step computes with the worker's own values

    def __init__(self, parts: StepParts, gate: HoldGate, local: LocalParts):
        self._window, self._host = local.steps, parts.exchange.copies.host
        self._taken = 0  # steps of the window so far
        self._newest, self._looked_s = 0, 0.0  # the global step that was read last, and when; a window keeps its _step
        self._last = NO_LIMIT
        self._exchanges_since: Optional[float] = None
        self._longest_s = 0.0  # of all exchanges so far
        grads = [grad for grad, _ in parts.grads_and_vars]
        self._described = {"gradient_norm": global_norm(grads), "learning_rate": tf.convert_to_tensor(local.rate)}
        clipped = {plain_name(variable): grad for grad, variable in clip(parts.grads_and_vars, parts.clip_norm)}
        with tf.device(self._host):
            self._sums, self._fetched = _make("sum", clipped), _make("fetched", clipped)
            self._number_taken = tf.placeholder(tf.int64, [])
            self._at = tf.placeholder(tf.int64, [])
            rate = tf.cast(local.rate, tf.float32)
            added = [tf.assign_add(self._sums[name], rate * grad).op for name, grad in clipped.items()]
            now = {name: held.read_value() - self._sums[name].read_value() for name, held in self._fetched.items()}
            self._load_window, self._add = local.load(now, self._at), tf.group(*added)
        # The sum has the rates of its steps in it.
        sums = [(self._sums[plain_name(variable)].read_value(), variable) for _, variable in parts.grads_and_vars]
        given = tf.train.GradientDescentOptimizer(1.0, use_locking=True)  # no sum of n steps is lost to another one
        super().__init__(replace(parts, optimizer=given, grads_and_vars=sums, clip_norm=None), gate, self._number_taken)
        with tf.device(self._global_step.device):
            self._look = gate.with_number(self._global_step.read_value())
        self._anew = self._copies.put(parts.exchange.fetch(), self._stamp)
        self._landed = self._land()

    def _land(self) -> List[Any]:
        """Make the tensors that begin a window with the values in the queue; the first is their stamp."""
        with tf.device(self._host):
            stamp, values = self._copies.take()
            begun = [tf.assign(self._fetched[name], value).op for name, value in values.items()]
            begun += [tf.assign(each, tf.zeros(each.shape)).op for each in self._sums.values()]
            return [stamp, tf.group(*begun)]

    def join(self, session: Any, steps: int) -> int:
        """Drop the window of an abandoned session, and begin a new window; return the global step."""
        self._last, self._taken = steps, 0
        super().join(session, steps)
        self._fetch(session)
        # The servers know this session's exchange from here on: they refuse it once one of them has started again.
        return self._give(session)

    def step(self, session: Any, more: Any = ()) -> Tuple[int, float, Any]:
        """Take a local step, and after the last one end the window; return the global step, the loss, and ``more``."""
        if not self._taken:
            self._begin_window(session)
        session.run(self._load_window, {self._at: self.own_step(0)})
        loss, fetched, _ = session.run([self._loss, more, self._add])
        self._taken += 1
        if self._taken >= self._window or self.own_step(0) >= self._last or self._must_end(session):
            self.finish(session, self._step)
        return self._newest, float(loss), fetched

    def own_step(self, step: int) -> int:
        """Return the servers' global step before the window, plus the number of steps in the window so far."""
        return self._step + self._taken

    def _must_end(self, session: Any) -> bool:
        """Look, if that is due, whether the others have ended training, or the chief holds all workers."""
        if time.monotonic() - self._looked_s < LOOK_S:
            return False
        with self._measured():
            self._note_counted(session.run(self._look))
        return self._newest >= self._last or self._gate.is_closed

    def _note_counted(self, found: Any) -> None:
        self._newest, self._looked_s = int(found[0]), time.monotonic()
        self._gate.note(found[1])

    def _begin_window(self, session: Any) -> None:
        self._gate.pass_through(session)
        if time.monotonic() - self._ended_s > self._took_s:
            self._fetch(session)
        self._began_s = time.monotonic()

    def finish(self, session: Any, step: int) -> int:
        """Send the servers the sum of the unfinished window, whose steps they then count; return the global step."""
        if self._taken:
            self._give(session)
            self._ended_s = time.monotonic()
            self._took_s = self._ended_s - self._began_s
        return self._step

    def _give(self, session: Any) -> int:
        """Give the servers the sum, begin a window with their new values, and return the global step."""
        with self._measured():
            counted, _ = session.run([self._counted, self._brought], {self._number_taken: self._taken})
            self._note_counted(counted)
            self._step, self._taken = self._newest, 0
            if not self.overlaps:
                session.run(self._anew)
            self._begin_with_queued(session)
        return self._step

    def _fetch(self, session: Any) -> None:
        """Begin a window with the servers' newest values."""
        with self._measured():
            session.run(self._copies.drain)
            session.run(self._anew)
            self._begin_with_queued(session)

    @contextlib.contextmanager
    def _measured(self) -> Iterator[None]:
        began_s = self._exchanges_since = time.monotonic()
        try:
            yield
        finally:
            self._exchanges_since = None
        self._longest_s = max(self._longest_s, time.monotonic() - began_s)

    def owes(self, session: Any) -> bool:
        """Return whether this worker delays its own current step; an exchange may take longer than a local step."""
        since = self._exchanges_since
        is_late = since is None or time.monotonic() - since > SLOWER * self._longest_s
        return is_late and super().owes(session)

    def _begin_with_queued(self, session: Any) -> None:
        stamp, _ = session.run(self._landed)
        if stamp != self._life:  # left behind by a session that was given up
            self._fetch(session)

    @contextlib.contextmanager
    def held(self, session: Any, step: int) -> Iterator[int]:
        """End the chief's own window, then stop all other workers at the gate, each after the end of its window."""
        self.finish(session, step)
        with super().held(session, step) as counted:
            yield counted

    def scalars(self) -> Dict[str, Any]:
        """Return tensors that describe a local step, by name."""
        return self._described


def _make(kind: str, like: Mapping[str, Any]) -> Dict[str, Any]:
    """Return a variable in the worker's memory for each of these tensors, by name."""
    with tf.variable_scope(f"local_steps/{kind}"):
        return {name: kept(name, each.shape.as_list(), tf.float32, 0) for name, each in like.items()}


def rate_of(optimizer: Any) -> Any:
    """Return the learning rate of ``optimizer``, TensorFlow's gradient descent: a number or a tensor."""
    rate = optimizer._learning_rate  # TensorFlow has no public name for it
    return rate() if callable(rate) else rate


def refuse_not_plain(
    model: ModelGraph, extensions: Sequence[Any], changing: Collection[str], trained: Mapping[str, VariableProfile]
) -> None:
    """Refuse a model or an optimizer for which a window of local steps would not equal plain gradient descent.

    Args:
      changing: names of variables that the model changes itself.
      trained: the profiles of the variables with a gradient, by name.

    Raises:
      JobError: the model or its optimizer needs more than plain gradient descent on dense float32 variables.
    """
    check, key, given = model.job.check, "with train.local_steps", model.optimizer
    is_plain = type(given) is tf.train.GradientDescentOptimizer and is_elementwise(given)
    check("optimizer", f"a tf.train.GradientDescentOptimizer {key}", f"a {type(given).__name__}", is_plain)
    for name in model.owned:  # it may change, and only the servers would know
        check("optimizer", f"one without variables of its own {key}", f"one with {name!r}", False)
    for each in extensions:
        check("model", f"variables alone {key}", type(each).__name__, False)
    for name in changing:
        expected = f"variables that only the optimizer changes, {key}; batch normalisation changes its averages"
        check("model", expected, f"a loss whose step changes {name!r}", False)
    for name, profile in trained.items():
        check("model", f"float32 variables with dense gradients {key}", f"one that uses {name!r}", profile.is_dense)
        is_free = model.variables[name].constraint is None
        check("model", f"variables without a constraint {key}", f"one that uses {name!r}", is_free)
