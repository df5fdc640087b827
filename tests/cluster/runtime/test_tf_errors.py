"""What an error is told to a person with: one line of TensorFlow's pages, or a part of it."""

import errno
import itertools
import threading
from typing import Any, Sequence

import numpy as np
import pytest

from cluster.runtime.devices import ps_device, worker_device
from cluster.runtime.tf_compat import tf
from cluster.runtime.tf_errors import line_of, raise_only_the_cause, reason_of
from tests.cluster.steps.test_sync_worker import servers_of
from tests.support.waiting import let_pass


@pytest.mark.parametrize(
    "message",
    [
        "/c/model-3.data; No space left on device",
        "/c/model-3.data; No space left on device\n\t [[node save/SaveV2 (defined at /j.py:6)]]\n\nOriginal stack",
        "From /job:worker/replica:0/task:0:\n/c/model-3.data; No space left on device\n\t [[node save]]",
        "Graph execution error:\n\nDetected at node 'save/SaveV2' defined at (most recent call last):\n    File /j.py"
        "\nNode: 'save/SaveV2'\n/c/model-3.data; No space left on device\n\t [[{{node save/SaveV2}}]]",
    ],
    ids=["bare", "1.15", "from a server", "2.x"],
)
def test_the_reason_is_the_line_that_has_one(message: str) -> None:
    error = tf.errors.ResourceExhaustedError(None, None, message)
    assert line_of(error) == "/c/model-3.data; No space left on device"
    assert reason_of(error) == "No space left on device"


@pytest.mark.parametrize("heads", ["", "From /job:ps/replica:0/task:0:\n"])
def test_below_the_heads_of_2_x_an_error_without_an_operation_has_its_reason(heads: str) -> None:
    error = tf.errors.UnavailableError(None, None, f"Graph execution error:\n\n{heads}Connection reset by peer\nmore")
    assert line_of(error) == reason_of(error) == "Connection reset by peer"


def test_of_an_error_of_the_system_the_reason_is_what_the_system_says() -> None:
    assert reason_of(OSError(errno.ENOSPC, "No space left on device", "/c/model-3.data")) == "No space left on device"


def test_a_request_that_a_server_took_for_an_earlier_one_is_named_without_its_tensors() -> None:
    message = (
        "Graph execution error:\n\nFrom /job:worker/replica:0/task:0:\nThe same RunGraph (Worker) request was received"
        ' twice. goo.gle/debugproto   step_id: 7 recv_key: "/job:ps/replica:0/task:0/device:CPU:0;a;/job:worker;x;0:0"'
    )
    reason = reason_of(tf.errors.AbortedError(None, None, message))
    assert reason == "a server took a request for one that it had received before"


def test_an_error_without_words_is_named_by_its_type() -> None:
    assert reason_of(ValueError()) == "ValueError"


REFUSED = "From /job:ps/replica:0/task:0:\nThe same RecvTensor (GrpcWorker) request was received twice. step_id: 6"
RAISED = "From /job:worker/replica:0/task:1:\n RuntimeError: went wrong\nTraceback:\n\n\t [[PyFunc]]"


def in_1_15(parts: Sequence[str]) -> str:
    return "\n".join(["", "=" * 21, *parts, "=" * 21, ""])


def in_2_x(parts: Sequence[str]) -> str:
    numbered = (f"  ({index}) {part.split(':')[0].upper()}:{part.split(':', 1)[1]}" for index, part in enumerate(parts))
    return "\n".join([f"{len(parts)} root error(s) found.", *numbered, "0 successful operations."])


@pytest.mark.parametrize("form", [in_1_15, in_2_x])
def test_of_several_tasks_errors_the_one_is_raised_that_does_not_follow_from_another(form: Any) -> None:
    for parts in itertools.permutations([f"Aborted: {REFUSED}", f"Unknown: {RAISED}", f"Unavailable: {REFUSED}"]):
        with pytest.raises(tf.errors.UnknownError) as raised, raise_only_the_cause():
            raise tf.errors.AbortedError(None, None, form(parts))
        assert raised.value.message.startswith(RAISED) and "twice" not in raised.value.message


@pytest.mark.parametrize(
    "message", [REFUSED, in_1_15([f"Aborted: {REFUSED}", f"Unavailable: {REFUSED}"]), in_2_x([f"Aborted: {REFUSED}"])]
)
def test_an_error_that_only_tells_of_lost_connections_stays_what_it_is(message: str) -> None:
    error = tf.errors.AbortedError(None, None, message)
    with pytest.raises(tf.errors.AbortedError) as raised, raise_only_the_cause():
        raise error
    assert raised.value is error


def test_what_a_job_raises_is_the_cause_though_a_ps_was_refused_a_tensor_of_that_step_first() -> None:
    begun = threading.Event()

    def linger() -> np.float32:  # so that the ps has failed before this worker's part of the step has ended
        begun.set()
        let_pass(0.5)
        return np.float32(1)

    def fail() -> np.float32:
        begun.wait(60)
        raise RuntimeError("went wrong")

    (target,) = servers_of([("ps", 1), ("worker", 1)])
    with tf.Graph().as_default(), tf.device(worker_device("worker", 0)):
        lingering, failing = tf.py_func(linger, [], tf.float32), tf.py_func(fail, [], tf.float32)
        with tf.device(ps_device(0)):
            waiting = tf.reshape(failing, []) + 1
        session = tf.Session(target)
        with session, pytest.raises(tf.errors.UnknownError, match="went wrong"), raise_only_the_cause():
            session.run([waiting, lingering])
