"""The file that Perfetto and chrome://tracing read."""

from typing import Any, Dict, List

from cluster.trace.chrome_format import Whole, trace
from cluster.trace.spans import COMPUTE, PULLS, ClockCorrection, DevicePlace, TraceSpan, Transfer

WORKER, PS = DevicePlace("worker:1", "CPU:0"), DevicePlace("ps:0", "CPU:0")
PULL = Transfer("v/read", 400, PS, WORKER)
WHOLE = Whole("worker:1", 7, [(1000, 90)], 2)


def named(file: Dict[str, Any], kind: str) -> Dict[Any, str]:
    """Names of processes by pid, or of threads by (pid, tid)."""
    told = [event for event in file["traceEvents"] if event["name"] == kind]
    return {(event["pid"], event["tid"]) if "tid" in event else event["pid"]: event["args"]["name"] for event in told}


def lasting(file: Dict[str, Any]) -> List[Dict[str, Any]]:
    return [event for event in file["traceEvents"] if event["ph"] == "X"]


def test_a_device_is_a_process_the_worker_s_own_first_and_its_lanes_are_threads() -> None:
    file = trace(WHOLE, [TraceSpan(PS, COMPUTE, "a", 1010, 5), TraceSpan(WORKER, COMPUTE, "b", 1020, 5)], {})
    assert named(file, "process_name") == {1: "worker:1", 2: "worker:1 CPU:0", 3: "ps:0"}
    assert sorted(named(file, "thread_name").values()) == ["compute", "compute", "step"]


def test_a_transfer_is_at_both_ends_with_its_bytes_and_variable_and_times_count_from_the_step_s_beginning() -> None:
    file = trace(WHOLE, [TraceSpan(WORKER, PULLS, "v", 1030, 20, PULL, ["v"])], {})
    args = {"bytes": 400, "tensor": "v/read", "from": "ps:0", "to": "worker:1", "variables": ["v"]}
    whole, *ends = lasting(file)
    assert (whole["name"], whole["ts"], whole["dur"]) == ("step 7", 0, 90)
    assert [(event["name"], event["ts"], event["dur"], event["args"]) for event in ends] == 2 * [("v", 30, 20, args)]
    processes = named(file, "process_name")
    assert [processes[event["pid"]] for event in ends] == ["worker:1 CPU:0", "ps:0"]


def test_what_lasts_at_the_same_time_lies_in_threads_of_one_name() -> None:
    spans = [TraceSpan(WORKER, PULLS, name, start, 10, PULL, [name]) for name, start in (("a", 0), ("b", 5), ("c", 10))]
    file = trace(WHOLE, spans, {})
    threads = {event["name"]: event["tid"] for event in lasting(file) if event["pid"] == 2}
    assert threads["a"] == threads["c"] != threads["b"]
    names = named(file, "thread_name")
    assert names[2, threads["a"]] == names[2, threads["b"]] == "pulls"


def test_no_time_is_below_zero_where_another_clock_is_behind() -> None:
    file = trace(WHOLE, [TraceSpan(PS, COMPUTE, "a", 990, 5)], {})
    assert [(event["name"], event["ts"]) for event in lasting(file)] == [("step 7", 10), ("a", 0)]


def test_what_is_not_known_is_told_beside_the_events() -> None:
    file = trace(WHOLE, [], {"ps:0": ClockCorrection(-950, 40)})
    assert file["otherData"] == {
        "task": "worker:1",
        "step": 7,
        "began_us": 1000,
        "unrecorded_transfers": 2,
        "clocks": {"ps:0": {"shift_us": -950, "uncertain_us": 40}},
    }
