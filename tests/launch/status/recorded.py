"""Two runs as a supervisor knows them; ``running.json`` and ``failed.json`` are their statuses as they were printed."""

import json
from pathlib import Path
from typing import Any, Dict

from launch.agent.protocol.messages import Exited, Lost, Measured, Signs, Start
from tests.support.agent.histories import Replay, advanced, started

HERE = Path(__file__).resolve().parent


def running() -> Replay:
    """An elastic run with an evaluator, a slow worker, a worker that starts again, and a host that was lost."""
    tasks = "ps:0@a", "worker:0@a", "worker:1@b", "worker:2@c", "worker:3@d", "evaluator:0@a", "ps:1@d+"
    replay = Replay(*tasks, min_workers=1)
    for order in replay.begin():
        if isinstance(order, Start):
            replay.at(0.5, started(order.task), advanced(order.task, waited_s=0.0))
    replay.at(0.9, Exited("worker:1", 0, 3, "exit code 3", kind="exit", lines=["broken"]))
    for second in range(1, 7):  # workers are compared once they have reported for five seconds
        of_chief: Dict[str, Any] = {"loss": 0.5 / second, "checkpoint_step": 10, "step_time_ms": 100.0}
        of_chief.update(curve=[[10 * second, 0.5 / second, 10]], curve_from=second - 1)
        replay.at(second, advanced("worker:0", 10 * second, examples=640 * second, waited_s=0.8 * second, **of_chief))
        replay.at(second, advanced("worker:2", 10 * second, examples=640 * second, waited_s=0.8 * second))
        replay.at(second, advanced("worker:3", 10 * second, examples=640 * second, waited_s=0.0, dropped_gradients=1))
    sign = {"attempt": 1, "state": "S", "stopped_s": 0.0, "silent_s": 0.0}
    replay.at(6.0, started("worker:1", 1), Signs({"worker:1": {**sign, "doing": "builds its graph"}}))
    replay.at(6.1, advanced("evaluator:0", 10, metrics={"accuracy": 0.9, "loss": 0.25}))
    usage = {"bytes_in_per_second": 1e6, "bytes_out_per_second": 2e6, "gpu_percent": 75.0, "gpu_memory_bytes": 2**30}
    replay.at(6.2, Measured({"worker:0": {"attempt": 0, **usage}}))
    replay.at(6.3, Lost("c", 10.0))
    replay.run.silent = ["c"]
    return replay


def ended() -> Replay:
    """A run that failed, as a worker died twice, from which another one's end followed."""
    replay = Replay(restart_max=1, backoff_s=1.0)
    replay.up()
    replay.at(1.2345, advanced("worker:0", 40, examples=2560, loss=0.5, checkpoint_step=30))
    killed, cut = "killed by SIGKILL", "lost its connection to worker:1"
    replay.at(2.3456, Exited("worker:1", 0, -9, killed, kind="signal", lines=["step 41", "step 42"]))
    replay.at(2.5, Exited("worker:0", 0, 1, cut, kind="lost-connection"))
    replay.at(4.0, started("worker:1", 1), started("worker:0", 1))
    replay.at(5.0, Exited("worker:1", 1, 3, "exit code 3", kind="exit", lines=["broken"], stack="in read()"))
    replay.at(6.0, Exited("worker:0", 1, -15), Exited("ps:0", 0, -15))
    return replay


def printed(name: str) -> Dict[str, Any]:
    """What ``launch status --json`` printed of it; the order of the fields counts."""
    values: Dict[str, Any] = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    return values
