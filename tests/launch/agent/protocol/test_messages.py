"""Messages survive their journey as JSON lines, and anything else is refused."""

import pytest

from cluster.protocol.save_request import HOLD
from launch.agent.protocol import messages
from launch.agent.protocol.messages import (
    Advanced,
    Dismiss,
    DrainRequested,
    End,
    Exited,
    Fetch,
    Go,
    GpuFailed,
    Joined,
    KillRequested,
    Leaving,
    Lost,
    Measured,
    Message,
    Ping,
    Prepare,
    Prepared,
    RestartRequested,
    Save,
    Signs,
    Start,
    Started,
    Stop,
    StopRequested,
    Tick,
    decode,
    encode,
)

EXAMPLES = [
    Joined("gpu01", "a1", 1.5), Lost("gpu01", 15.5), Go(), Tick(), Ping(1.5, 0.25),
    Start("worker:1", 2), Stop("ps:0", 10.0, 1), Fetch(40),
    Signs({"worker:1": {"attempt": 0, "state": "T"}}), Stop("ps:0", 0.0, 1, stack=True),
    RestartRequested(["worker:1"]), GpuFailed(["worker:1"], "GPU 1 failed"),
    Measured({"worker:1": {"attempt": 0, "gpu_percent": 87.5}}),
    Started("worker:1", 2, 42, [0, 1], "/r/worker.1/attempt_2.log"), StopRequested("Ctrl-C"), KillRequested("again"),
    Leaving("gpu01", "SIGTERM"),
    Advanced("worker:1", 0, {"step": 3, "loss": None}), Exited("worker:1", 0, None, "a line\nand another, “quoted”"),
    Exited("worker:1", 0, -9, None, {"succeeded": True, "metrics": {"accuracy": 0.97}}), End("succeeded"),
    Save("worker:0", 1, 3), Save("worker:0", 1, 4, HOLD), DrainRequested(["ps:1"], back=True),
    Prepare("ps:0", 1, '{"ps": ["a:1"]}', 0, 2), Prepared("ps:0", 1), Dismiss("ps:0", 2),
]  # fmt: skip


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_a_message_comes_out_as_it_went_in_and_is_one_line(message: Message) -> None:
    line = encode(message)
    assert decode(line) == message
    assert b"\n" not in line


def test_every_kind_of_message_can_travel() -> None:
    assert set(messages.Message.__args__) == {type(example) for example in EXAMPLES}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"GET / HTTP/1.1\r\n", b"[]", b"3", b"null", b"{}", b'{"message": "Reboot"}', b'{"message": ["Go"]}',
     b'{"message": "Start"}', b'{"message": "Go", "argv": ["sh"]}', b"\xff\xfe\n",
     b'{"message": "Start", "task": 1, "attempt": 2}', b'{"message": "Start", "task": "ps:0", "attempt": true}',
     b'{"message": "GpuFailed", "tasks": "ps:0", "what": ""}', b'{"message": "Signs", "tasks": {"ps:0": null}}'],
)  # fmt: skip
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):
        decode(line)
