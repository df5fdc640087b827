"""What TensorFlow measured becomes spans: of both runtimes, as recorded."""

from types import SimpleNamespace
from typing import Any, Dict, List, Sequence

import pytest

from cluster.trace.spans import (
    COMPUTE,
    OTHERS,
    PULLS,
    PUSHES,
    WAITING,
    DevicePlace,
    Transfer,
    count_unrecorded,
    place_of,
    spans,
    transfer_of,
)
from tests.cluster.trace import recorded

WORKER, FIRST, SECOND = DevicePlace("worker:1", "CPU:0"), DevicePlace("ps:0", "CPU:0"), DevicePlace("ps:1", "CPU:0")
OF = {
    "hidden": "hidden", "output": "output", "tower_0/GatherV2": "table",
    "Identity_1": "hidden", "Identity_2": "output", "concat": "table", "concat_1": "table", "Const_7": "table",
}  # fmt: skip


def payload(transfer: Transfer) -> Sequence[str]:
    return [OF[transfer.tensor]] if transfer.tensor in OF else []


@pytest.mark.parametrize("runtime", [1, 2])
def test_a_worker_s_pulls_and_pushes_are_found_with_their_bytes_and_ends(runtime: int) -> None:
    pulls: Dict[str, List[int]] = {}
    for span in spans(recorded.devices(runtime), payload):
        if span.lane == PULLS:
            assert span.transfer is not None and span.place == WORKER
            assert span.transfer.source == (FIRST if span.name == "table" else SECOND)
            pulls.setdefault(span.name, []).append(span.transfer.size)
    rows = pulls.pop("table")
    assert pulls == {"hidden": [4 * 8 * 4], "output": [8 * 4]}
    assert len(rows) == 1 and rows[0] % (8 * 4) == 0


@pytest.mark.parametrize(("runtime", "missing"), [(1, {"output"}), (2, set())])
def test_what_was_not_recorded_is_counted(runtime: int, missing: set) -> None:  # type: ignore[type-arg]
    pushed = {span.name for span in spans(recorded.devices(runtime), payload) if span.lane == PUSHES}
    assert pushed == {"hidden", "output", "table"} - missing
    assert count_unrecorded(recorded.devices(runtime)) == len(missing)


@pytest.mark.parametrize("runtime", [1, 2])
def test_what_runs_on_a_device_is_compute_unless_it_waits_and_no_thread_is_a_device(runtime: int) -> None:
    found = spans(recorded.devices(runtime), payload)
    of = {(span.place, span.name): span.lane for span in found if span.transfer is None}
    assert of[WORKER, "tower_0/matmul"] == COMPUTE
    assert of[FIRST, "fifo_queue_1_DequeueMany_2"] == WAITING
    assert {span.place for span in found} == {WORKER, FIRST, SECOND}


@pytest.mark.parametrize("runtime", [1, 2])
def test_tokens_counts_and_steps_are_other_transfers(runtime: int) -> None:
    others = {span.name for span in spans(recorded.devices(runtime), payload) if span.lane == OTHERS}
    assert {"strided_slice_1", "ScatterAdd", "token_sync/local_step/read"} <= others


def test_a_gpu_of_a_chief_is_a_place_and_threads_of_the_host_are_none() -> None:
    assert place_of("/job:chief/replica:0/task:0/device:GPU:1") == ("chief:0", "GPU:1")
    assert place_of("/job:ps/replica:0/task:12/cpu:0") == ("ps:12", "CPU:0")
    assert place_of("/host:CPU") is None
    assert place_of("/device:GPU:0/stream:all") is None


def sent(label: str, size: int = 8) -> Any:
    return transfer_of(recorded.node("RecvTensor", label, size=size))


def test_the_bytes_of_a_large_tensor_are_exact_though_its_label_rounds_them() -> None:
    label = "[4.6MB] [95.1Mb/s] edge_6_v000 from /job:ps/replica:0/task:0/device:CPU:0 to /job:worker/task:1/cpu:0"
    assert sent(label, 4800000) == Transfer("v000", 4800000, FIRST, WORKER)


def test_a_transfer_of_several_variables_is_named_for_the_first_and_tells_all() -> None:
    label = "[64B] [1.0Mb/s] edge_6_concat from /job:ps/replica:0/task:0/device:CPU:0 to /job:worker/task:1/cpu:0"
    stats = SimpleNamespace(device="/job:worker/task:1/cpu:0", node_stats=[recorded.node("RecvTensor", label, size=64)])
    (span,) = spans([stats], lambda _: ["a", "b", "c"])
    assert (span.name, list(span.variables), span.lane) == ("a and 2 more", ["a", "b", "c"], PULLS)


def test_a_label_that_cannot_be_read_is_no_transfer() -> None:
    assert sent("[8B] nowhere") is None
    assert sent("[8B] [1.0Mb/s] edge_1_v from /job:ps/replica:0/task:0/device:CPU:0 to /host:CPU") is None
