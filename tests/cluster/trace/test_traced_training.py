"""A step of a real cluster is traced by every worker."""

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

from cluster.variables.layout import whole
from tests.support.training.processes import Cluster

STEP, HIDDEN = 5, 32


def complete(folder: Path, worker: int) -> Dict[str, Any]:
    """The first trace of a worker in which TensorFlow recorded every transfer."""
    paths = sorted(folder.glob(f"step_*.worker_{worker}.json"), key=lambda path: int(path.name.split(".")[0][5:]))
    assert paths and paths[0].name == f"step_{STEP}.worker_{worker}.json"
    found = [json.loads(path.read_text()) for path in paths]
    return next(file for file in found if file["otherData"]["unrecorded_transfers"] == 0)


def travelled(file: Dict[str, Any], lane: str, device: str) -> List[Dict[str, Any]]:
    """What is told of each transfer of a lane, from or to a device."""
    pids = {each["args"]["name"]: each["pid"] for each in file["traceEvents"] if each["name"] == "process_name"}
    events = [event for event in file["traceEvents"] if event["ph"] == "X"]
    return [event["args"] for event in events if (event["cat"], event["pid"]) == (lane, pids[device])]


def total(transfers: List[Dict[str, Any]]) -> int:
    return sum(each["bytes"] for each in transfers)


def devices(file: Dict[str, Any], lane: str) -> List[str]:
    """Where something of a lane happened."""
    names = {event["pid"]: event["args"]["name"] for event in file["traceEvents"] if event["name"] == "process_name"}
    return sorted({names[each["pid"]] for each in file["traceEvents"] if each["ph"] == "X" and each["cat"] == lane})


def assert_can_be_shown(file: Dict[str, Any]) -> None:
    """Every process and thread has a name, and what is in one thread follows each other."""
    events = file["traceEvents"]
    named = {(each["pid"], each.get("tid")) for each in events if each["name"] in ("process_name", "thread_name")}
    until: Dict[Any, int] = {}
    for event in events:
        if event["ph"] == "X":
            thread = event["pid"], event["tid"]
            assert thread in named and (event["pid"], None) in named
            assert event["ts"] >= until.get(thread, 0) and event["dur"] > 0
            until[thread] = event["ts"] + event["dur"]


@pytest.mark.parametrize(("mode", "workers"), [("sync", 2), ("async", 1)])
def test_every_worker_s_trace_has_its_pulls_compute_and_pushes_and_their_bytes_are_the_model_s(
    tmp_path: Path, mode: str, workers: int
) -> None:
    shapes = {"conv1": (9, 16), "conv2": (9 * 16, 32), "hidden": (128, HIDDEN), "output": (HIDDEN, 10)}
    values = [number for inner, outer in shapes.values() for number in (inner * outer, outer)]  # weights and biases
    model = sum(64 * -(-number // 16) for number in values)  # bytes, in rows of 16
    names = {f"{layer}/{part}" for layer in shapes for part in ("weights", "bias")}
    with Cluster(tmp_path, "digits", ps=2, workers=workers) as cluster:
        train = {"mode": mode, "steps": 60, "batch_size": 8, "towers": 2, "trace": STEP}
        cluster.start_all(train, {"hidden": HIDDEN})
        cluster.finish()
    for worker in range(workers):
        file = complete(tmp_path / "trace", worker)
        assert_can_be_shown(file)
        host, second = f"worker:{worker} CPU:0", f"worker:{worker} CPU:1"
        pulls, pushes = travelled(file, "pulls", host), travelled(file, "pushes", host)
        assert total(pulls) == total(pushes) == model
        for travels in (pulls, pushes):
            assert {whole(name) for each in travels for name in each["variables"]} == names
        assert devices(file, "pulls") == devices(file, "pushes") == ["ps:0", "ps:1", host]
        assert devices(file, "compute") == ["ps:0", "ps:1", host, second]
