"""Remember the newest run of a name that this machine began with ``--local``, and a run that it began later without.

Later verbs need no flag then.

WORKDIR/local/NAME.json     {"run": RUN, "later": RUN on the hosts of the file or null}, on the machine of the launcher
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Optional

from cluster.protocol.shared_files import replace_file
from cluster.spec.model import Spec
from launch.agent.state import process_records
from launch.agent.state.run_folder import RunFolder, expand


class Newest(NamedTuple):
    """The place of the newest run of a name that this machine has begun.

    Attributes:
      local: whether it is on this machine, with ``--local``.
      said: the line to print about the choice; None where there was none.
    """

    local: bool
    said: Optional[str] = None


def remember(spec: Spec, run: str) -> None:
    """Note that this machine has begun a run, on itself or on the hosts of the file."""
    workdir = expand(spec.local_workdir)
    note = workdir / f"{spec.name}.json"
    with suppress(OSError):  # a run goes on without; the next verb has to be given --local then
        if spec.local:
            workdir.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(note, json.dumps({"run": run, "later": None}))
        elif _read(note, "run") is not None:
            replace_file(note, json.dumps({"run": _read(note, "run"), "later": run}))


def newest(spec: Spec) -> Newest:
    """Return which run a verb about the file means; ``spec`` is that of the file."""
    workdir = expand(spec.local_workdir)
    note = workdir / f"{spec.name}.json"
    run, later = _read(note, "run"), _read(note, "later")
    if run is None or not (workdir / "runs" / run).is_dir():
        return Newest(False)
    if later is None:
        return Newest(True, f"{run} is on this machine, started with --local; --no-local asks the hosts of the file")
    if not _is_up(workdir, run):
        return Newest(False)
    return Newest(False, f"{later} is on the hosts of the file; {run} is still up on this machine: --local means it")


def is_here(spec: Spec, run: str) -> bool:
    """Return whether a run was begun on this machine with ``--local``."""
    return (expand(spec.local_workdir) / "runs" / run).is_dir()


def _is_up(workdir: Path, run: str) -> bool:
    """Return whether an agent of the run lives."""
    hosts = (workdir / "runs" / run / "hosts").glob("*")
    with suppress(OSError, ValueError, KeyError):  # a record that a full disk has left in pieces names nobody
        return any(process_records.agent_of(RunFolder(workdir, run, host.name)) for host in hosts)
    return False


def _read(note: Path, key: str) -> Optional[str]:
    try:
        value = json.loads(note.read_text())[key]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return value if isinstance(value, str) else None
