"""TensorFlow's own synchronous steps: they train, they end, who joins again goes on, and the traps are those told."""

import threading
import uuid
from pathlib import Path
from typing import Any, Callable, Iterator, List

import numpy as np
import pytest

from cluster.runtime.devices import ps_device, worker_device
from cluster.runtime.server_state import take_all
from cluster.runtime.tf_compat import tf
from cluster.steps.stock_worker import TRAPS, StockWorker
from tests.cluster.steps.test_sync_worker import PATIENCE_S, filters, servers_of, together
from tests.support.nightly import few
from tests.support.training.processes import Cluster
from tests.support.waiting import eventually, let_pass

STEPS = 12
PLACES = np.array([[1.0, -2.0], [3.0, 0.5]], np.float32)  # to which the two variables are drawn
WAIT_S = 0.3


def momentum() -> Any:
    return tf.train.MomentumOptimizer(0.05, 0.9)


@pytest.fixture(scope="module")
def targets() -> List[str]:
    """The targets of three workers beside two ps."""
    return servers_of([("ps", 2), ("worker", 3)])


class Worker:
    """Its loss draws each variable to a place; all workers have the same one, so any of their gradients is the mean."""

    def __init__(self, target: str, container: str, index: int, workers: int = 2, backup: int = 0, rows: Any = None):
        self._target, self._index = target, index
        with tf.Graph().as_default() as self._graph, tf.container(container), tf.device(worker_device("worker", index)):
            with tf.device(ps_device(0)):
                self.global_step = tf.train.get_or_create_global_step()
                tokens = tf.FIFOQueue(-1, tf.int64, shapes=(), shared_name="sync_token_q")
                self._take_tokens = take_all(tokens)
            setter = tf.train.replica_device_setter(2, worker_device=worker_device("worker", index))
            with tf.device(setter):
                self.variables = [tf.get_variable(name, [2], initializer=tf.zeros_initializer()) for name in "ab"]
            places = [tf.constant(place) for place in PLACES]
            loss = tf.add_n([tf.reduce_sum((w - place) ** 2) for w, place in zip(self.variables, places)])
            grads = tf.gradients(loss, self.variables)
            if rows is not None:
                ones = tf.IndexedSlices(tf.ones([len(rows)]), tf.constant(rows), tf.constant([2]))
                grads = [ones, None]
            optimizer = momentum() if rows is None else tf.train.GradientDescentOptimizer(1.0)
            pairs = list(zip(grads, self.variables))
            self.stepper = StockWorker(optimizer, pairs, self.global_step, loss, workers, index, backup)
            self._initialise = tf.global_variables_initializer()
            self._initialise_step = self.global_step.initializer
            self.take_step = [taken_of(variable, workers) for variable in self.variables]
            self._graph.finalize()
        self.connect()

    def connect(self) -> None:
        """Begins a new session, as a worker does that has lost one."""
        config = tf.ConfigProto(device_filters=filters(self._index))
        self.session = tf.Session(self._target, graph=self._graph, config=config)

    def open(self) -> int:
        self.stepper.close(self.session)
        self.session.run(self._initialise)
        return self.stepper.open(self.session)

    def join_again(self) -> int:
        let_pass(WAIT_S)  # a worker that has lost a server waits as long before it closes its session
        self.session.close()
        self.connect()
        return self.stepper.join(self.session, 1000)

    def step(self) -> int:
        return self.stepper.step(self.session)[0]

    def train(self, steps: int) -> Callable[[], int]:
        """What takes steps until there have been so many; returns the last global step that it saw."""

        def steps_to_the_end() -> int:
            step = 0
            while step < steps:
                step = self.step()
            return step

        return steps_to_the_end

    def take_tokens(self) -> int:
        """Takes those that lie there; how many there were."""
        return len(self.session.run(self._take_tokens))

    def values(self) -> np.ndarray:
        return np.array(self.session.run(self.variables))

    def global_steps(self) -> int:
        return int(self.session.run(self.global_step))


def taken_of(variable: Any, number: int) -> Any:
    """Takes the mean of so many gradients from a variable's accumulator."""
    with tf.device(variable.device):
        name = f"{variable.name}/grad_accum"
        return tf.ConditionalAccumulator(tf.float32, shape=[2], shared_name=name).take_grad(number)


Make = Callable[..., List[Worker]]


@pytest.fixture
def opened(targets: List[str]) -> Iterator[Make]:
    """Makes workers, the chief first, all joined."""
    container = uuid.uuid4().hex
    made: List[Worker] = []

    def make(workers: int = 2, **options: Any) -> List[Worker]:
        made.extend(Worker(target, container, i, workers, **options) for i, target in enumerate(targets[:workers]))
        assert made[0].open() == 0
        assert [worker.stepper.join(worker.session, STEPS) for worker in made[1:]] == [0] * (workers - 1)
        return made

    yield make
    for worker in made:
        worker.session.close()
    eventually("the end of the queue runners", lambda: not runners())


def runners() -> List[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("QueueRunnerThread")]


def alone(steps: int) -> np.ndarray:
    """The values after so many steps in one plain process."""
    with tf.Graph().as_default():
        variables = [tf.get_variable(name, [2], initializer=tf.zeros_initializer()) for name in "ab"]
        loss = tf.add_n([tf.reduce_sum((w - place) ** 2) for w, place in zip(variables, PLACES)])
        update = momentum().minimize(loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(steps):
                session.run(update)
            return np.array(session.run(variables))


def near(found: np.ndarray, steps: int) -> None:
    np.testing.assert_allclose(found, alone(steps), rtol=1e-5)


@pytest.mark.parametrize("workers", few([1, 2, 3], [3]))
def test_it_trains_as_one_process_does_and_every_worker_stops_at_the_last_step(opened: Make, workers: int) -> None:
    made = opened(workers)
    assert together(*(worker.train(STEPS) for worker in made)) == [STEPS] * workers
    near(made[0].values(), STEPS)
    assert made[0].global_steps() == STEPS
    assert made[0].stepper.account(made[0].session).startswith(f"steps: {STEPS}, each with the first {workers} ")


def test_with_a_backup_worker_the_others_need_not_wait_for_it(opened: Make) -> None:
    made = opened(3, backup=1)
    assert together(*(worker.train(STEPS) for worker in made[:2])) == [STEPS] * 2
    near(made[0].values(), STEPS)


def test_a_worker_that_joins_again_goes_on(opened: Make) -> None:
    chief, other = opened()
    together(chief.train(4), other.train(4))
    assert other.stepper.is_open(other.session) and other.join_again() == 4
    assert together(chief.train(STEPS), other.train(STEPS)) == [STEPS] * 2
    near(chief.values(), STEPS)


def test_a_chief_that_joins_again_goes_on(opened: Make) -> None:
    chief, other = opened()
    together(chief.train(4), other.train(4))
    assert chief.join_again() == 4
    assert together(chief.train(STEPS), other.train(STEPS)) == [STEPS] * 2
    near(chief.values(), STEPS)


def test_where_the_queue_runner_fails_the_chief_s_step_tells_why_and_it_can_join_again(opened: Make) -> None:
    chief, other = opened()
    chief.take_tokens()
    lost = tf.errors.UnavailableError(None, None, "ps:1 is gone")

    def fail() -> None:
        eventually("the chief's gradient", lambda: not chief.stepper.owes(chief.session))
        chief.stepper._runner.request_stop(lost)  # type: ignore[union-attr]

    def wait() -> str:
        with pytest.raises(tf.errors.UnavailableError) as caught:
            chief.step()
        return str(caught.value)

    assert "ps:1 is gone" in together(wait, fail)[0]
    chief.connect()
    assert chief.stepper.join(chief.session, STEPS) == 0
    assert together(chief.train(STEPS), other.train(STEPS)) == [STEPS] * 2
    near(chief.values(), STEPS)


def test_a_chief_owes_a_step_that_a_lost_one_has_taken_and_goes_on_when_it_joins_again(targets: List[str]) -> None:
    container = uuid.uuid4().hex
    chief, other = (Worker(targets[index], container, index) for index in range(2))
    lost = threading.Thread(target=chief.session.run, args=[chief.take_step], daemon=True)
    lost.start()
    let_pass(WAIT_S)  # its servers hear of it before they hear of the next one
    chief.connect()
    chief.open()
    other.stepper.join(other.session, STEPS)
    chief.take_tokens()

    def step_in_vain() -> None:
        with pytest.raises((tf.errors.OpError, RuntimeError)):
            chief.step()

    def join_again() -> int:
        eventually("the gradients to be gone", lambda: not lost.is_alive())
        eventually("both to wait", lambda: all(each.session.run(each.stepper._given) for each in (chief, other)))
        assert chief.stepper.owes(chief.session) and not other.stepper.owes(other.session)
        assert chief.join_again() == 0
        return chief.train(STEPS)()

    assert together(step_in_vain, join_again, other.train(STEPS))[1:] == [STEPS, STEPS]
    near(chief.values(), STEPS)
    for worker in (chief, other):
        worker.session.close()


def test_there_is_nothing_to_join_beyond_the_last_step(opened: Make) -> None:
    chief, other = opened()
    together(chief.train(4), other.train(4))
    assert other.stepper.join(other.session, 4) == 4


def test_a_worker_that_finds_a_variable_without_a_value_is_to_join_again(targets: List[str]) -> None:
    worker = Worker(targets[1], uuid.uuid4().hex, 1)
    worker.session.run(worker._initialise_step)
    assert not worker.stepper.is_open(worker.session)
    with pytest.raises(tf.errors.AbortedError, match="Variables not initialized: a, b"):
        worker.stepper.join(worker.session, STEPS)
    worker.session.close()


def test_a_worker_owes_its_gradient_until_it_has_given_it_and_tells_how_long_it_waited(opened: Make) -> None:
    chief, other = opened()
    assert chief.take_tokens() == 2  # that were preloaded
    assert chief.stepper.owes(chief.session)

    def follow() -> int:
        eventually("the chief's gradient", lambda: not chief.stepper.owes(chief.session))
        let_pass(WAIT_S)
        assert other.stepper.owes(other.session)
        return other.step()

    assert together(chief.step, follow) == [1, 1]
    assert chief.stepper.owes(chief.session) and other.stepper.owes(other.session)
    assert WAIT_S * 0.9 < chief.stepper.waited_s < PATIENCE_S
    assert other.stepper.waited_s < chief.stepper.waited_s
    near(chief.values(), 1)


def test_a_chief_trains_alone_and_the_gradient_of_who_comes_later_is_dropped_and_counted(opened: Make) -> None:
    chief, late = opened()
    chief.train(3)()
    late.step()
    assert late.stepper.dropped == 1
    assert chief.stepper.dropped <= 2  # those for which it had tokens of the step before
    near(chief.values(), chief.global_steps())


def test_the_mean_of_a_row_is_over_the_workers_that_sent_it(targets: List[str]) -> None:
    container = uuid.uuid4().hex
    chief, other = (Worker(targets[i], container, i, rows=rows) for i, rows in enumerate([[1, 0, 1], [1]]))
    chief.open()
    other.stepper.join(other.session, STEPS)
    chief.take_tokens()
    assert together(chief.step, other.step) == [1, 1]
    assert chief.values()[0].tolist() == [-1.0, -1.5]  # row 0 by itself; of row 1 the mean of 2 and 1
    for worker in (chief, other):
        worker.session.close()


def test_its_traps_are_told_once_by_the_chief(opened: Make, capsys: pytest.CaptureFixture[str]) -> None:
    chief, _ = opened()
    assert capsys.readouterr().out == TRAPS + "\n"
    chief.session.close()
    chief.connect()
    chief.open()
    assert capsys.readouterr().out == ""


def test_a_step_s_gradient_norm_and_learning_rate_are_shown(targets: List[str]) -> None:
    container = uuid.uuid4().hex
    with tf.Graph().as_default(), tf.container(container), tf.device(worker_device("worker", 0)):
        with tf.device(ps_device(0)):
            step = tf.train.get_or_create_global_step()
            variable = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
        pairs = [(tf.constant([3.0, 4.0]), variable)]
        stepper = StockWorker(tf.train.GradientDescentOptimizer(0.5), pairs, step, tf.constant(0.0), 1, 0)
        scalars = stepper.scalars()
        with tf.Session(targets[0]) as session:
            shown = {name: float(value) for name, value in session.run(scalars).items()}
    assert shown == {"gradient_norm": 5.0, "learning_rate": 0.5}


def test_a_job_is_trained_by_it_with_tables_update_operations_and_an_evaluation(tmp_path: Path) -> None:
    with Cluster(tmp_path, "recommend", ps=2) as cluster:
        cluster.start_all({"steps": 20, "batch_size": 16, "towers": 2, "sync": "stock"}, {"buckets": 2000, "seed": 0})
        outcome = cluster.finish()
        assert outcome.step == 20 and outcome.metrics["loss"] < 1.5
        assert "train.sync: stock has known traps" in cluster.log("worker", 0)
        reader = tf.train.load_checkpoint(outcome.checkpoint)
    assert reader.get_tensor("deep").shape == (2000, 16) and reader.get_tensor("global_step") == 20
