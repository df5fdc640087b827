"""Let one chief at a time write into a checkpoint folder.

The rule also holds when two hosts share the folder. The chief that opens leaves a note, ``owner.json``, and looks at
the note before every save. A chief that finds the note of another one has been replaced while it was cut off: it
stops, and writes nothing.

    what a chief finds when it opens            what it does
    no note, or one that cannot be read         leaves its own
    an earlier attempt of its own run           leaves its own
    a later attempt of its own run              stops
    another run, and this is its own first      leaves its own: the run was begun by somebody who
      attempt                                     wants it here
    another run, and this is a later attempt    stops: that run has taken the folder meanwhile

So nothing depends on the clocks of two hosts. It is a note and no lock: a chief that is held up between
its look and its save is not stopped. No folder on shared storage has locks that all agree on.
"""

import json
import os
import socket
import uuid
from pathlib import Path
from typing import Any, Dict, Mapping, NamedTuple, Optional

from cluster.errors import CheckpointError
from cluster.protocol.shared_files import replace_file

NOTE = "owner.json"


class Owner(NamedTuple):
    """One life of a chief. ``attempt`` counts from 0 within ``run``; ``life`` is of this process alone."""

    run: str
    attempt: int
    host: str
    pid: int
    life: str

    @classmethod
    def of_this_process(cls, environ: Mapping[str, str]) -> "Owner":
        """Read the owner from the launcher's environment.

        A process that was started by hand is a run of its own.
        """
        pid = os.getpid()
        attempt = environ.get("LAUNCH_ATTEMPT", "0")
        run = environ.get("LAUNCH_RUN") or f"by hand, pid {pid}"
        return cls(run, int(attempt) if attempt.isdigit() else 0, socket.gethostname(), pid, uuid.uuid4().hex)

    def __str__(self) -> str:
        return f"{self.run} (attempt {self.attempt}, pid {self.pid} on {self.host})"


class Ownership:
    """One chief's claim to a folder."""

    def __init__(self, folder: Path, owner: Owner):
        self._folder, self._note, self._own = folder, folder / NOTE, owner

    def take(self) -> None:
        """Take the folder for this chief, from now on.

        Raises:
          CheckpointError: it is already that of one that replaced this chief.
          OSError: the note cannot be written.
        """
        found = self._read()
        if found is not None and found.life != self._own.life:
            same = found.run == self._own.run
            if found.attempt > self._own.attempt if same else self._own.attempt > 0:
                raise self._replaced_by(found)
        self._write()

    def check(self) -> None:
        """Check that the folder is still this chief's.

        Raises:
          CheckpointError: another chief has taken it.
          OSError: the note is gone and cannot be written.
        """
        found = self._read()
        if found is None:
            self._write()
        elif found.life != self._own.life:
            raise self._replaced_by(found)

    def _replaced_by(self, found: Owner) -> CheckpointError:
        return CheckpointError(
            f"checkpoint folder {self._folder}: expected no other writer than {self._own}, found that {found} has taken"
            " it since; end one of the two runs, or give each a train.checkpoint.dir of its own"
        )

    def _write(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        replace_file(self._note, json.dumps(self._own._asdict()))

    def _read(self) -> Optional[Owner]:
        try:
            values: Dict[str, Any] = json.loads(self._note.read_text())
            return Owner(**values)
        except (OSError, ValueError, TypeError):
            return None
