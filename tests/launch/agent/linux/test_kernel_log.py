"""What the kernel says of trouble since a run began, and where it says it."""

import os
import time
from pathlib import Path

import pytest

from launch.agent.linux import kernel_log
from launch.agent.linux.kernel_log import Unreadable, kind_of, troubles


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Out of memory: Killed process 42 (python)", "memory"),
        ("python invoked oom-killer: gfp_mask=0xcc0", "memory"),
        ("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", "gpu"),
        ("blk_update_request: I/O error, dev sda, sector 9", "disk"),
        ("EXT4-fs (sda1): Remounting filesystem read-only", "disk"),
        ("nfs: server files not responding, still trying", "network disk"),
        ("INFO: task python:42 blocked for more than 120 seconds.", "hung task"),
        ("python[42]: segfault at 0 ip 0", "crash"),
        ("eth0: link is down", "network"),
        ("eth0: link is up", None),
        ("audit: type=1400", None),
    ],
)
def test_a_message_is_of_a_kind_of_trouble_or_none(text: str, kind: str) -> None:
    assert kind_of(text) == kind


def test_only_what_was_said_since_the_run_began_is_told(tmp_path: Path) -> None:
    booted = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
    log = tmp_path / "kmsg"
    lines = ["6,1,1000000,-;Out of memory: old", "6,2,9000000,-;Out of memory: new", "6,3,9000000,-;eth0: up"]
    log.write_text("".join(line + "\n" for line in [*lines, " SUBSYSTEM=pci", "broken"]))
    (found,) = troubles(booted + 5.0, log)
    assert (found.kind, found.text) == ("memory", "Out of memory: new")
    assert found.time == pytest.approx(booted + 9.0, abs=1.0)


def journalctl(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal of the test's own."""
    program = folder / "journalctl"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.not_fast
def test_where_the_kernel_does_not_tell_the_journal_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journalctl(tmp_path, "echo '1795260000.5 h kernel: NVRM: Xid 79'; echo -- No entries --", monkeypatch)
    assert troubles(0.0, tmp_path / "none") == [(1795260000.5, "gpu", "h kernel: NVRM: Xid 79")]


@pytest.mark.not_fast
def test_where_neither_tells_it_is_said_what_would_let_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journalctl(tmp_path, "exit 1", monkeypatch)
    with pytest.raises(Unreadable, match="No such file or directory, and journalctl refuses; to read"):
        troubles(0.0, tmp_path / "none")


def test_the_newest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_log, "KEPT", 2)
    log = tmp_path / "kmsg"
    log.write_text("".join(f"6,{n},{n},-;Out of memory: {n}\n" for n in range(5)))
    assert [each.text[-1] for each in troubles(0.0, log)] == ["3", "4"]
