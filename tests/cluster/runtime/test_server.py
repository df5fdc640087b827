"""What a task's server refuses, and whom its sessions talk to."""

import socket
import threading

import pytest

from cluster.errors import TaskError
from cluster.runtime import server
from cluster.runtime.devices import tower_devices
from cluster.runtime.server import session_config, start
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from tests.support.waiting import PATIENCE_S


@pytest.mark.parametrize(
    ("worker", "way"), [("127.0.0.1", "hosts file, or start with --local, which takes free ports"), ("b", "hosts file")]
)
def test_a_taken_port_is_told_with_its_address_how_to_find_who_has_it_and_how_to_get_another(
    worker: str, way: str
) -> None:
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen(1)
        port = other.getsockname()[1]
        task = Task("ps", 0, {"ps": [f"localhost:{port}"], "worker": [f"{worker}:1"]})
        with pytest.raises(TaskError) as caught:
            start(task)
    assert f"ps:0: expected port {port} of localhost to be free" in str(caught.value)
    assert f"ss -ltnp 'sport = :{port}'" in str(caught.value)
    assert str(caught.value).endswith(f"end it, or set another `port` in the {way}")


def test_a_session_that_takes_long_to_close_is_closed_while_training_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CLOSE_S", 0.05)
    began, goes_on, closed = (threading.Event() for _ in range(3))

    class Session:
        def close(self) -> None:
            began.set()
            goes_on.wait(PATIENCE_S)
            closed.set()
            raise tf.errors.UnavailableError(None, None, "its server is gone")

    server.close(Session())
    assert began.wait(PATIENCE_S) and not closed.is_set()
    goes_on.set()
    assert closed.wait(PATIENCE_S)


def test_a_session_that_closes_at_once_is_closed_when_training_goes_on() -> None:
    session = tf.Session(graph=tf.Graph())
    server.close(session)
    with session.graph.as_default(), pytest.raises(RuntimeError, match="closed"):
        session.run(tf.constant(1))


def test_a_workers_sessions_do_not_wait_for_other_workers() -> None:
    cluster = {"ps": ["a:1"], "worker": ["b:1", "c:1"]}
    assert list(session_config(Task("worker", 1, cluster)).device_filters) == ["/job:ps", "/job:worker/task:1"]
    assert list(session_config(Task("ps", 0, cluster)).device_filters) == ["/job:ps/task:0"]


def test_graphs_are_rewritten_only_where_that_makes_steps_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (Task("worker", index, {"ps": ["a:1"], "worker": ["b:1", "c:1"]}) for index in (0, 1))

    def rewrites(*lent_tasks: Task) -> bool:
        return not session_config(one, lent_tasks).graph_options.rewrite_options.disable_meta_optimizer

    monkeypatch.setattr("cluster.runtime.server.available_gpus", list)
    assert (rewrites(), rewrites(other)) == (False, True)  # the other's devices may be GPUs
    monkeypatch.setattr("cluster.runtime.server.available_gpus", lambda: ["/device:GPU:0"])
    assert rewrites()


def test_without_gpus_a_worker_has_one_tower_or_as_many_cpu_devices_as_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cluster.runtime.devices.available_gpus", list)
    assert tower_devices(Train(towers="auto")) == ["CPU:0"]
    assert tower_devices(Train(towers=3)) == ["CPU:0", "CPU:1", "CPU:2"]


def test_more_towers_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster.runtime.devices.available_gpus", lambda: ["/device:GPU:0", "/device:GPU:1"])
    assert tower_devices(Train(towers="auto")) == ["GPU:0", "GPU:1"]
    with pytest.raises(TaskError, match="expected at most 2, the GPUs of this task; found 3"):
        tower_devices(Train(towers=3))
