"""The rules for coming back, each from the state in which a task may have died.

One server and up to three workers inside this process; a death while waiting for a token is a
step that is given up after a moment, for then everything before the wait has happened.
"""

import ctypes
import threading
import uuid
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from typing import Any, Callable, Iterator, List, Tuple

import numpy as np
import pytest

from cluster.runtime.devices import ps_device, worker_device
from cluster.runtime.tf_compat import tf
from cluster.steps.base_worker import StepParts
from cluster.steps.exchange import Exchange
from cluster.steps.sync_worker import SyncWorker
from cluster.variables.local_copies import LocalCopies
from cluster.variables.wire_format import Wire
from launch.agent.linux.sockets import free_ports
from tests.support.waiting import eventually, let_pass

PATIENCE_S = 60
GIVES_MS = 3000


def servers_of(roles: List[Tuple[str, int]]) -> List[str]:
    """Starts servers in this process; the targets of the workers among them.

    Servers have no stop, so they last as long as the process.
    """
    ports = iter(free_ports(sum(number for _, number in roles)))
    spec = tf.train.ClusterSpec({role: [f"127.0.0.1:{next(ports)}" for _ in range(n)] for role, n in roles})
    servers = [
        (role, tf.train.Server(spec, job_name=role, task_index=index)) for role, n in roles for index in range(n)
    ]
    for _, server in servers:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))  # its destructor fails when the interpreter ends
    targets = [server.target for role, server in servers if role == "worker"]
    return [target.decode() if isinstance(target, bytes) else target for target in targets]


@pytest.fixture(scope="module")
def targets() -> List[str]:
    """The targets of three workers beside one ps."""
    return servers_of([("ps", 1), ("worker", 3)])


class Stepping:
    """A worker's stepper, and the session in which it takes steps."""

    stepper: SyncWorker
    session: Any
    _initialise: Any

    def open(self) -> None:
        self.stepper.close(self.session)
        self.session.run(self._initialise)
        self.stepper.open(self.session)

    def join(self) -> int:
        return self.stepper.join(self.session, steps=100)

    def step(self) -> int:
        return self.stepper.step(self.session)[0]

    def step_after_join(self) -> int:
        self.join()
        return self.step()


class Worker(Stepping):
    """Gives its part of the mean of the gradients index + 1 of ``a`` and -(index + 1) of ``b``; learning rate 1."""

    def __init__(self, target: str, container: str, index: int, workers: int = 2):
        with tf.Graph().as_default() as graph, tf.container(container), tf.device(worker_device("worker", index)):
            with tf.device(ps_device(0)):
                self.global_step = tf.train.get_or_create_global_step()
                self.variables = [tf.get_variable(name, [2], initializer=tf.zeros_initializer()) for name in "ab"]
            gradients = [tf.fill([2], sign * (index + 1.0) / workers) for sign in (1, -1)]
            pairs = list(zip(gradients, self.variables))
            optimizer, exchange = tf.train.GradientDescentOptimizer(1.0), Exchange(LocalCopies([], {}, ""), Wire())
            parts = StepParts(optimizer, pairs, self.global_step, tf.constant(0.0), workers, index, exchange)
            self.stepper = SyncWorker(parts)
            self.optimizer = self.stepper._optimizer
            self._initialise = tf.global_variables_initializer()
            self.session = tf.Session(target, graph=graph, config=tf.ConfigProto(device_filters=filters(index)))

    def step_after(self, other: "Worker") -> int:
        """Takes its step half a second after the other has given its gradient."""
        index, before = other.optimizer.worker_index, min(self.given())
        eventually("the other's gradient", lambda: self.given()[index] > before)
        let_pass(0.5)
        return self.step()

    def die_waiting(self) -> None:
        """Gives its gradient and is gone before its token comes."""
        wait_in_vain(self.session, self.stepper._token)

    def die_waiting_at(self, place: int) -> Callable[[], None]:
        """Takes the gradients of one push, once all are there, and is gone."""

        def die() -> None:
            self.session.run(self.optimizer.give)
            self.session.run(self.optimizer._meetings[place].take())

        return die

    def values(self) -> List[float]:
        return [float(self.session.run(variable)[0]) for variable in self.variables]

    def given(self) -> List[int]:
        """How many gradients each worker has given, as the servers count them."""
        counted, era = self.session.run([self.optimizer.contributions, self.optimizer.era])
        given: List[int] = (counted - era).tolist()
        return given


def filters(index: int) -> List[str]:
    return ["/job:ps", f"/job:worker/task:{index}"]


def opened(targets: List[str]) -> List[Worker]:
    """The workers of a fresh cluster at step 0, the chief first, all joined."""
    container = uuid.uuid4().hex
    made = [Worker(target, container, index, len(targets)) for index, target in enumerate(targets)]
    made[0].open()
    assert [worker.join() for worker in made[1:]] == [0] * (len(targets) - 1)
    return made


@pytest.fixture
def workers(targets: List[str]) -> Iterator[List[Worker]]:
    """Chief and worker 1."""
    made = opened(targets[:2])
    yield made
    for worker in made:
        worker.session.close()


def wait_in_vain(session: Any, token: Any) -> None:
    """Gives a gradient and waits for a token that does not come, so long that a busy machine has given the gradient."""
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(token, options=tf.RunOptions(timeout_in_ms=GIVES_MS))


def together(*calls: Any) -> List[Any]:
    """The results of calls that wait for each other. What one of them raises is raised here."""
    futures: List[Future[Any]] = [Future() for _ in calls]
    for call, future in zip(calls, futures):
        threading.Thread(target=_run, args=(call, future), daemon=True).start()
    ended, waiting = wait(futures, PATIENCE_S, FIRST_EXCEPTION)
    for future in ended:
        future.result()
    assert not waiting, "a call still waits"
    return [future.result() for future in futures]


def _run(call: Any, future: "Future[Any]") -> None:
    try:
        future.set_result(call())
    except Exception as error:
        future.set_exception(error)


def test_without_copies_nothing_can_be_behind_so_no_step_looks_for_leftovers(targets: List[str]) -> None:
    assert Worker(targets[0], uuid.uuid4().hex, 0).optimizer.behind is None


def test_a_step_applies_the_mean_of_the_workers_gradients(workers: List[Worker]) -> None:
    chief, other = workers
    assert together(chief.step, other.step) == [1, 1]
    assert chief.values() == [-1.5, 1.5]
    assert chief.given() == [1, 1]


def test_a_quick_worker_cannot_take_the_token_of_one_that_is_slow_to_take_it(targets: List[str]) -> None:
    chief, quick, slow = opened(targets)
    slow.die_waiting()
    assert together(chief.step, quick.step) == [1, 1]  # and the slow one's token lies there
    quick.die_waiting()  # it finds no token for a second step
    assert quick.given() == [1, 2, 1]
    assert together(chief.step, quick.join, slow.step_after_join) == [2, 2, 2]
    assert chief.values() == [-4, 4]


def test_a_worker_tells_how_long_it_waited_for_the_other_after_it_had_given_its_gradient(workers: List[Worker]) -> None:
    for quick, slow in (workers, workers[::-1]):
        before = [float(worker.stepper.waited_s or 0) for worker in (quick, slow)]
        together(quick.step, lambda quick=quick, slow=slow: slow.step_after(quick))
        quick_s, slow_s = (float(w.stepper.waited_s or 0) - then for w, then in zip((quick, slow), before))
        assert 0.3 < quick_s < PATIENCE_S
        assert 0.0 <= slow_s < quick_s


def test_a_worker_that_died_before_its_gradient_gives_it_without_a_token(workers: List[Worker]) -> None:
    chief, other = workers
    assert other.join() == 0
    assert together(chief.step, other.step) == [1, 1]
    assert chief.values() == [-1.5, 1.5]


def test_a_worker_that_died_waiting_does_not_give_its_gradient_again(workers: List[Worker]) -> None:
    chief, other = workers
    other.die_waiting()
    assert together(chief.step, other.join) == [1, 1]
    assert chief.values() == [-1.5, 1.5]
    assert together(chief.step, other.step) == [2, 2]
    assert chief.given() == [2, 2]


@pytest.mark.parametrize("gives", [1, 2])
@pytest.mark.parametrize("index", [0, 1])
def test_one_that_died_among_its_pushes_gives_only_the_others(workers: List[Worker], index: int, gives: int) -> None:
    """The exhaustive model found it: the step had that worker's gradient twice, and lost another's."""
    dies, other = workers[index], workers[1 - index]
    dies.session.run(dies.optimizer.give[:gives])
    assert together(dies.join, other.step) == [1, 1]
    assert workers[0].values() == [-1.5, 1.5]
    assert together(dies.step, other.step) == [2, 2]
    assert workers[0].values() == [-3, 3] and workers[0].given() == [2, 2]


def test_a_chief_that_skips_a_step_drops_no_gradient_of_the_next_one(workers: List[Worker]) -> None:
    """The exhaustive model found it: who joined between the two waited for ever."""
    chief, other = workers
    together(chief.die_waiting_at(0), other.die_waiting)
    run = chief.session.run
    skipped = []

    def running(fetches: Any, *more: Any, **named: Any) -> Any:
        found = run(fetches, *more, **named)
        if fetches is chief.stepper._skip:
            skipped.append(other.join())
            other.session.run(other.optimizer.give)
        return found

    chief.session.run = running
    assert chief.join() == 1 and skipped == [1]
    assert together(chief.step, other.join) == [2, 2]
    assert chief.values()[1] == 1.5


def test_a_token_that_was_meant_for_its_predecessor_does_not_let_a_worker_run_ahead(workers: List[Worker]) -> None:
    chief, other = workers
    other.die_waiting()
    chief.step()
    assert other.join() == 1  # and the token 1 still lies in its queue
    assert together(chief.step, other.step) == [2, 2]
    assert together(chief.step, other.step) == [3, 3]
    assert chief.given() == [3, 3]
    assert chief.values() == [-4.5, 4.5]


def test_a_chief_that_died_waiting_for_gradients_finishes_the_step_without_giving_its_own_again(
    workers: List[Worker],
) -> None:
    chief, other = workers
    chief.die_waiting()
    assert together(chief.join, other.step) == [1, 1]
    assert chief.values() == [-1.5, 1.5]
    assert together(chief.step, other.step) == [2, 2]
    assert chief.given() == [2, 2]


def test_a_chief_that_died_before_it_sent_the_tokens_sends_them_when_it_joins(workers: List[Worker]) -> None:
    chief, other = workers
    other.die_waiting()
    chief.step()
    chief.session.run(chief.optimizer.drain_all)  # as if it had died before it sent them

    def wait_and_step() -> int:
        other.stepper._wait_for_newer(other.session, 0)  # it is still in step 0, and waits
        return other.step()

    def join_and_step() -> int:
        assert chief.join() == 1
        return chief.step()

    assert together(join_and_step, wait_and_step) == [2, 2]
    assert chief.given() == [2, 2]
    assert chief.values() == [-3, 3]


def test_a_chief_that_died_while_applying_counts_the_step_as_done(workers: List[Worker]) -> None:
    chief, other = workers
    other.die_waiting()
    chief.session.run(chief.optimizer.empty[0])  # the gradient of ``a`` is taken, that of ``b`` is not
    assert together(chief.join, other.join) == [1, 1]
    assert together(chief.step, other.step) == [2, 2]
    assert chief.values() == [-1.5, 1.5]
    assert chief.given() == [2, 2]


def test_a_cluster_is_closed_to_workers_until_the_chief_has_prepared_the_servers(workers: List[Worker]) -> None:
    chief, other = workers
    assert other.stepper.is_open(other.session)
    chief.stepper.close(chief.session)
    assert not other.stepper.is_open(other.session)
    assert chief.stepper.open(chief.session) == 0
    assert other.stepper.is_open(other.session)


def test_opening_again_at_an_older_step_forgets_the_gradients_and_tokens_of_newer_ones(workers: List[Worker]) -> None:
    chief, other = workers
    for step in (1, 2):
        assert together(chief.step, other.step) == [step, step]
    other.die_waiting()
    chief.open()  # all variables from the beginning, as from an old checkpoint
    assert other.join() == 0
    assert together(chief.step, other.step) == [1, 1]
    assert chief.values() == [-1.5, 1.5]


def test_a_worker_that_waits_for_a_token_while_variables_are_restored_is_told_to_join_again(
    workers: List[Worker],
) -> None:
    chief, other = workers
    assert together(chief.step, other.step) == [1, 1]

    def wait() -> str:
        with pytest.raises(tf.errors.AbortedError) as caught:
            other.step()
        return str(caught.value)

    def restore() -> None:
        eventually("the other's gradient", lambda: chief.given() == [1, 2])
        chief.open()

    assert "closed the cluster" in together(restore, wait)[1]
    assert other.join() == 0
    assert together(chief.step, other.step) == [1, 1]


def test_a_chief_alone_joins_itself(targets: List[str]) -> None:
    chief = Worker(targets[0], uuid.uuid4().hex, 0, workers=1)
    chief.open()
    assert chief.step() == 1
    assert chief.join() == 1
    assert chief.step() == 2
    assert chief.values() == [-2, 2]
    assert np.array_equal(chief.given(), [2])


def owing(workers: List[Worker]) -> List[bool]:
    """Of each worker, whether the step waits for it."""
    return [worker.stepper.owes(worker.session) for worker in workers]


def test_a_worker_owes_its_gradient_until_it_has_given_it(workers: List[Worker]) -> None:
    assert owing(workers) == [True, True]
    workers[1].die_waiting()
    assert owing(workers) == [True, False]


def test_once_all_have_given_theirs_the_chief_owes_the_step(workers: List[Worker]) -> None:
    chief = workers[0]
    for worker in workers:
        worker.session.run(worker.optimizer.give)
    assert owing(workers) == [True, False]
    chief.stepper.close(chief.session)  # and while it prepares the servers, the others wait for it
    assert owing(workers) == [True, False]
