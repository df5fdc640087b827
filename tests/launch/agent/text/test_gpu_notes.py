"""TensorFlow's notes about missing GPU libraries are known by their whole form, and no other line is taken for one."""

import pytest

from launch.agent.text import gpu_note

DSO = "W tensorflow/stream_executor/platform/default/dso_loader.cc:55]"
LIBCUDA = "Could not load dynamic library 'libcuda.so.1'"


@pytest.mark.parametrize(
    ("line", "note"),
    [
        (
            f"2026-11-23 14:58:33.535927: {DSO} {LIBCUDA}; dlerror: libcuda.so.1: cannot open shared object file",
            LIBCUDA,
        ),
        (
            "2026-11-23 14:58:33.535979: E tensorflow/stream_executor/cuda/cuda_driver.cc:318] failed call to cuInit: "
            "UNKNOWN ERROR (303)",
            "failed call to cuInit: UNKNOWN ERROR (303)",
        ),
        (
            "2026-11-23 15:00:00.1: I external/local_xla/xla/tsl/cuda/cudart_stub.cc:31] Could not find cuda drivers "
            "on your machine, GPU will not be used.",
            "Could not find cuda drivers on your machine, GPU will not be used.",
        ),
    ],
)
def test_a_note_loses_its_time_and_place(line: str, note: str) -> None:
    assert gpu_note(line) == f"TensorFlow: {note}"


@pytest.mark.parametrize(
    "line",
    [
        "",
        LIBCUDA,
        f"2026-11-23 14:58:33.535927: {DSO} Successfully opened dynamic library libcudart.so.10.0",
        "2026-11-23 14:58:33.5: E tensorflow/stream_executor/cuda/cuda_driver.cc:318] out of memory",
        f"ImportError: {LIBCUDA}",
    ],
)
def test_any_other_line_is_none(line: str) -> None:
    assert gpu_note(line) is None
