"""What an error is told to a person with: one line of TensorFlow's pages, or a part of it."""

import errno

import pytest

from cluster.engine import tf
from cluster.reasons import line_of, reason_of


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


def test_of_an_error_of_the_system_the_reason_is_what_the_system_says() -> None:
    assert reason_of(OSError(errno.ENOSPC, "No space left on device", "/c/model-3.data")) == "No space left on device"


def test_an_error_without_words_is_named_by_its_type() -> None:
    assert reason_of(ValueError()) == "ValueError"
