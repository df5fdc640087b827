"""The record of a grid on the launcher's machine: the state of each point, from which the same command continues.

WORKDIR/local/grids/NAME-HASH/grid.json    NAME of the run, HASH of the command
                              grid.lock    locked by the launcher of the grid
"""

import hashlib
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence

from cluster.protocol.shared_files import read_at_most, replace_file
from cluster.protocol.typed_json import Malformed, from_values, to_values
from cluster.spec.model import Spec
from cluster.spec.reading import read_document
from launch.agent.linux import file_lock
from launch.agent.state.run_folder import expand
from launch.errors import UsageError
from launch.grid.points import GridPoint, changes
from launch.target import Target

LARGEST = 32 << 20  # bytes of a record


@dataclass(frozen=True)
class GridRecord:
    """The values of the hosts file when the grid began, and the points."""

    file: Dict[str, Any]
    points: List[GridPoint]


class GridFolder:
    """The folder of a grid; only the launcher that runs the grid writes to the folder."""

    def __init__(self, target: Target, spec: Spec, options: Sequence[str]):
        command = [os.path.abspath(target.file), target.local, target.overrides, target.include, target.exclude]
        digest = hashlib.sha256(json.dumps([*command, list(options)]).encode()).hexdigest()[:8]
        self.path = expand(spec.local_workdir) / "grids" / f"{spec.name}-{digest}"
        self._file: Dict[str, Any] = read_document(Path(target.file))[0].value

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock of the grid in this block, so that no other launcher runs the grid.

        Raises:
          UsageError: another launcher runs the grid, or the folder cannot be written.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = self.path / "grid.lock"
            handle = file_lock.take(lock)
        except file_lock.LockHeld:
            raise UsageError(
                f"{self.path}: expected no other launcher of this grid, found one; wait for its end"
            ) from None
        except OSError as error:
            raise UsageError(f"{self.path}: expected a folder to write to, found {error.strerror}") from None
        try:
            yield
        finally:
            lock.unlink()  # while it is held: the next holder creates another
            os.close(handle)

    def begun(self, planned: Sequence[GridPoint]) -> List[GridPoint]:
        """Return the points in the grid's record, or ``planned`` if no record exists.

        Raises:
          UsageError: the hosts file has changed since the grid began, or the record cannot be read.
        """
        path = self.path / "grid.json"
        try:
            record = from_values(GridRecord, json.loads(read_at_most(path, LARGEST)))
        except FileNotFoundError:
            return list(planned)
        except (OSError, ValueError, Malformed) as error:
            raise UsageError(
                f"{path}: expected the record of a grid, found {error}; begin again with --fresh"
            ) from None
        changed = changes(record.file, self._file)
        if changed:
            head = "the hosts file has changed since the grid began; restore it, or begin again with --fresh:"
            raise UsageError("\n".join([head, *changed]))
        return record.points

    def write(self, points: Sequence[GridPoint]) -> None:
        """Replace the record. Raises OSError."""
        replace_file(self.path / "grid.json", json.dumps(to_values(GridRecord(self._file, list(points)))))
