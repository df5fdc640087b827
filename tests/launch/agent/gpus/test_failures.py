"""GPUs that fail: in the words of kernels and drivers, which files and a script stand in for."""

import os
from pathlib import Path
from typing import Any

import pytest

from launch.agent.gpus.watching import FAILED_S, Failures
from tests.support.waiting import eventually

pytestmark = pytest.mark.not_fast

TWO = "0, 00000000:3B:00.0\n1, 00000000:AF:00.0\n"


class Host:
    """A host with two cards, and a file in the place of the kernel's messages."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("PATH", "/nowhere")
        self.kmsg = folder / "kmsg"
        self.kmsg.write_text("3,1,1,-;NVRM: Xid (PCI:0000:3b:00): 79, of a run before\n")
        self.failures = Failures(self.kmsg)
        self.failures.judge(TWO)

    def says(self, line: str) -> Any:
        with self.kmsg.open("a") as file:
            file.write(f"3,339,5140900,-;{line}\n")
        return self.failures.look(0.0)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("line", "failed"),
    [
        ("NVRM: Xid (PCI:0000:af:00): 79, GPU has fallen off the bus.", "Xid 79, it has fallen off the bus"),
        ("NVRM: Xid (PCI:0000:af:00): 48, pid=1896, An uncorrectable double bit error", "Xid 48, double-bit error"),
        ("NVRM: Xid (PCI:0000:AF:00.0): 119, pid=7, name=python, Timeout after 6s", "Xid 119, its system processor"),
        ("NVRM: Xid (0000:af:00): 95, pid=1, Uncontained", "Xid 95, uncontained error of its memory"),
    ],
)
def test_an_xid_after_which_a_card_needs_a_reset_is_a_failure_of_that_card(host: Host, line: str, failed: str) -> None:
    found = host.says(line)
    assert list(found) == [1] and found[1].startswith(f"GPU 1 (0000:af:00): {failed}")


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:af:00): 31, pid=79749, name=exe, Ch 0000000a, MMU Fault",  # a program's own error
        "NVRM: Xid (PCI:0000:af:00): 63, pid=1896, Row Remapper: New row marked for remapping",
        "NVRM: Xid (PCI:0000:c1:00): 79, GPU has fallen off the bus.",  # no card of ours
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.1",
    ],
)
def test_other_messages_are_none(host: Host, line: str) -> None:
    assert host.says(line) == {}


def test_a_card_that_the_driver_lost_is_named_with_its_reason_and_the_first_reason_stays(host: Host) -> None:
    host.failures.judge("Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error\n")
    host.failures.judge("1, 00000000:AF:00.0\n")
    assert host.failures.look(0.0) == {0: "GPU 0 (0000:3b:00): the driver cannot reach it (Unknown Error)"}


def test_a_card_that_is_listed_no_more_has_failed_and_an_answer_without_cards_says_nothing(host: Host) -> None:
    host.failures.judge("Failed to initialize NVML: Driver/library version mismatch\n")
    assert host.failures.look(0.0) == {}
    host.failures.judge("0, 00000000:3B:00.0\n")
    assert host.failures.look(0.0) == {1: "GPU 1 (0000:af:00): the driver no longer lists it"}


def test_messages_that_this_user_may_not_read_are_none(tmp_path: Path) -> None:
    assert Failures(tmp_path / "none").look(0.0) == {}


@pytest.mark.not_fast
def test_a_driver_that_hangs_is_a_failure_of_every_card_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\nif test -e {tmp_path}/hangs; then exec sleep 600; fi\nprintf '{TWO}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    failures = Failures(tmp_path / "none")
    failures.look(0.0)
    eventually(
        "the first answer",
        lambda: failures._question._asked is not None and failures._question._asked.poll() is not None,
    )
    (tmp_path / "hangs").touch()
    assert failures.look(1.0) == {}
    assert failures.look(1.0 + FAILED_S) == {}
    why = f"the driver has not answered for {FAILED_S:.0f} s"
    assert failures.look(2.0 + FAILED_S) == {0: f"GPU 0 (0000:3b:00): {why}", 1: f"GPU 1 (0000:af:00): {why}"}
