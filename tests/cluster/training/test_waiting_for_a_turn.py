"""A worker that waits for its turn builds its model meanwhile, and only once; no port of it is open before its turn."""

import socket
import threading
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any, List

import pytest

from cluster.job import Job
from cluster.protocol.outcome import Outcome, Reporter
from cluster.protocol.standby import Standby, is_ready
from cluster.runtime import server
from cluster.task import Task, Train
from cluster.training.trainer import train
from launch.agent.linux.sockets import free_ports
from tests.benchmarks.speed import job
from tests.support.training import kept
from tests.support.waiting import PATIENCE_S, eventually


def is_open(address: str) -> bool:
    """Whether a server listens there."""
    host, port = address.split(":")
    with socket.socket() as dialing:
        return dialing.connect_ex((host, int(port))) == 0


@pytest.mark.parametrize("shape", [[800, 250], [4, 5]], ids=["chooses-slices", "has-nothing-to-choose"])
def test_its_model_is_built_once_before_its_turn(
    shape: List[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job may open a session, and the first one of a process decides with how many threads it computes."""
    ports = free_ports(2)
    cluster = {"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{ports[1]}"]}
    ps, chief = Task("ps", 0, cluster), Task("worker", 0, cluster)
    built: List[str] = []

    def model(x: Any, args: Any) -> Any:
        built.append("the model")
        return job.model(x, args)

    monkeypatch.setattr(server, "settle_threads", lambda *size: built.append(f"threads {size}"))
    counted = Job.from_module(SimpleNamespace(**{**vars(job), "model": model}))  # type: ignore[arg-type]
    lines: Queue[bytes] = Queue()
    reporter = Reporter(tmp_path)
    standby = Standby(True, tmp_path, None, lines.get)
    ended: List[Outcome] = []

    def work() -> None:
        settings = Train(steps=2, tower_batch_size=1)
        args = {"shapes": [shape]}
        ended.append(train(counted, chief, settings, args, reporter, str(tmp_path / "checkpoint"), standby))

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    kept.running.append(worker)
    eventually("a process that is ready", lambda: is_ready(tmp_path))
    assert built == ["threads (1, 0)", "the model"] and not is_open(cluster["worker"][0]) and standby.waits
    serving = server.start(ps)
    threading.Thread(target=server.wait_until_done, args=[ps, serving], daemon=True).start()
    lines.put(b"\n")
    worker.join(PATIENCE_S)
    assert [each.cause for each in ended] == [None] and ended[0].step == 2
    assert built == ["threads (1, 0)", "the model"]


def test_a_mistake_before_its_turn_is_raised_and_not_reported(tmp_path: Path) -> None:
    def model(x: Any, args: Any) -> Any:
        raise ValueError("a mistake")

    wrong = Job.from_module(SimpleNamespace(**{**vars(job), "model": model}))  # type: ignore[arg-type]
    port = free_ports(1)[0]
    chief = Task("worker", 0, {"ps": ["127.0.0.1:1"], "worker": [f"127.0.0.1:{port}"]})
    reporter, lines = Reporter(tmp_path), Queue()  # type: ignore[var-annotated]
    standby = Standby(True, tmp_path, None, lines.get)
    with pytest.raises(Exception, match="a mistake"):
        train(wrong, chief, Train(steps=2), {"shapes": [[4, 5]]}, reporter, None, standby)
    lines.put(b"\n")
    eventually("its turn", lambda: not standby.waits)
    assert not (tmp_path / "outcome.json").exists()
