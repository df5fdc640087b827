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
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from cluster.protocol.shared_files import read_at_most, replace_file
from cluster.protocol.typed_json import Malformed, from_values, to_values
from cluster.spec.model import Spec
from cluster.spec.reading import read_document
from launch.agent.linux import file_lock
from launch.agent.state.run_folder import expand
from launch.errors import UsageError
from launch.grid.points import GridPoint, changes
from launch.hosts.bundle import JobCode, shipped
from launch.hosts.job_files import content_of
from launch.target import Target

LARGEST = 32 << 20  # bytes of a record
MOST_NAMES = 3  # changed files in an error


@dataclass(frozen=True)
class GridRecord:
    """The values of the hosts file when the grid began, the points, and the digest of each Python file of the job.

    ``code`` is None in the record of an older launcher.
    """

    file: Dict[str, Any]
    points: List[GridPoint]
    code: Optional[Dict[str, str]] = None


class GridFolder:
    """The folder of a grid; only the launcher that runs the grid writes to the folder.

    Args:
      jobs: the code that the points train.
    """

    def __init__(self, target: Target, spec: Spec, options: Sequence[str], jobs: Sequence[JobCode]):
        command = [os.path.abspath(target.file), target.local, target.overrides, target.include, target.exclude]
        digest = hashlib.sha256(json.dumps([*command, list(options)]).encode()).hexdigest()[:8]
        self.path = expand(spec.local_workdir) / "grids" / f"{spec.name}-{digest}"
        self._file: Dict[str, Any] = read_document(Path(target.file))[0].value
        self._beside, self._jobs = os.path.dirname(os.path.abspath(target.file)), jobs
        self._code = self._digests()

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
          UsageError: the hosts file or the job's code has changed since the grid began, or the record cannot be read.
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
        _refuse_other_code(record.code or {}, self._code)
        return record.points

    def refuse_changed_code(self) -> None:
        """Refuse code that has changed since this launcher has begun or continued the grid. Raises UsageError."""
        _refuse_other_code(self._code, self._digests())

    def _digests(self) -> Dict[str, str]:
        """Return the digest of each Python file that the runs ship, by its path from the hosts file."""
        files = [path for job in self._jobs for path in shipped(job) if path.suffix == ".py"]
        return {os.path.relpath(path, self._beside): hashlib.sha256(content_of(path)).hexdigest() for path in files}

    def write(self, points: Sequence[GridPoint]) -> None:
        """Replace the record. Raises OSError."""
        replace_file(self.path / "grid.json", json.dumps(to_values(GridRecord(self._file, list(points), self._code))))


def _refuse_other_code(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse files that differ or are gone; a new file alone changes no result.

    Raises:
      UsageError: the code has changed; the text names the files.
    """
    changed = [name for name, digest in before.items() if now.get(name) != digest]
    if changed:
        names = ", ".join([*changed[:MOST_NAMES], *(["…"] if len(changed) > MOST_NAMES else [])])
        has, it = ("has", "it") if len(changed) == 1 else ("have", "them")
        raise UsageError(f"{names} {has} changed since the grid began; restore {it}, or begin again with --fresh")
