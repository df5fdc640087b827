"""What the program of a simulated task reads and writes: the files that real tasks share with their agent."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Dict, Mapping

from cluster.protocol.outcome import OUTCOME, PROGRESS
from cluster.protocol.save_request import HOLD, SAVE
from cluster.protocol.standby import READY
from tests.simulation import saved
from tests.simulation.disks import Disk
from tests.simulation.processes import Process

EVERY_S = 1.0  # of progress, as ``cluster.protocol.outcome.Reporter`` has it


class Program:
    """The program of one process.

    Args:
      folder: the task's own.
      monotonic: the time that its host counts.
    """

    def __init__(self, process: Process, folder: Path, monotonic: Callable[[], float], disk: Disk):
        self._process, self._folder, self._monotonic, self._disk = process, folder, monotonic, disk
        self._written: Dict[str, Any] = {}
        self._passed_over: Dict[str, Any] = {}
        self._written_at = -EVERY_S

    def be_ready(self) -> None:
        """Wait for the turn."""
        if self._process.code is None and not self._process.is_still:
            self._write(READY, "")

    def look_for_request(self) -> None:
        """Take up a newer request to save."""
        path = f"{self._folder}/{SAVE}"
        if self._disk.lexists(path):
            number, manner = self._disk.read(path).decode().split()
            self._process.save_asked, self._process.holds = int(number), manner == HOLD

    def report(self, step_time_ms: float) -> None:
        """Write progress, where there is news, and the time for it has come."""
        process, before = self._process, self._written
        progress = {
            "step": process.step, "examples": process.examples, "checkpoint_step": process.checkpoint,
            "save_begun": process.save_done, "save_done": process.save_done, "step_time_ms": step_time_ms,
            "joins": process.joins, "joined_step": process.joined, **self._passed_over,
        }  # fmt: skip
        is_due = self._monotonic() >= self._written_at + EVERY_S
        if progress != before and (is_due or progress["save_done"] != before.get("save_done")):
            self._written, self._written_at = progress, self._monotonic()
            self._write(PROGRESS, json.dumps(progress))

    def save(self, step: int) -> bool:
        """Write a checkpoint; return whether the disk has it."""
        try:
            saved.write(self._disk, self._checkpoints, step)
        except OSError:
            return False
        return True

    def restore(self) -> saved.Restored:
        """Return what the chief begins with; it reports the checkpoints that it passes over."""
        found = saved.restore(self._disk, self._checkpoints)
        if found.newest > found.step:
            why = f"model-{found.newest} lacks a file"
            self._passed_over = {
                "passed_over": why, "passed_over_from": found.newest, "passed_over_to": found.step
            }  # fmt: skip
        return found

    @property
    def _checkpoints(self) -> Path:
        return self._folder.parent / "checkpoint"

    def succeed(self, outcome: Mapping[str, Any]) -> None:
        """Write the last checkpoint and the outcome, the last act, and end."""
        checkpoint = self._checkpoints / f"model-{outcome['checkpoint_step']}"
        with suppress(OSError):
            self._disk.write(f"{checkpoint}.index", "")
        self._write(OUTCOME, json.dumps({**outcome, "checkpoint": str(checkpoint)}))
        self._process.leave(0)

    def _write(self, name: str, text: str) -> None:
        with suppress(OSError):  # a full disk ends no training
            self._disk.write(f"{self._folder}/{name}", text)
