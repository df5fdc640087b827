"""The archive of a diagnosis: only its owner can read it, and the summary comes first."""

import io
import json
import os
import tarfile
import time
from pathlib import Path
from typing import Any, Iterator, List, Tuple

from launch.diagnosis.collect import HostReport
from launch.diagnosis.summary import text
from launch.errors import UsageError
from launch.status.values import to_values

README = """What `launch diagnose` found, without secrets as far as it knows them: read it before you give it away.

summary.txt                     begin here: the run, what looks wrong, a line for each host
launcher.json                   the machine that asked: its Python, and when
hosts/HOST/
  machine.json                  kernel, load, memory, pressure, limits, control groups, mounts
  disks.json                    room and inodes of the folders that matter
  versions.json                 the tasks' Python, its packages, the hashes of the code
  clock.json                    how far its clock is ahead of the launcher's, and how far that may be wrong
  environment.json              names of variables of a session there; values only of those known to be harmless
  gpus.json, nvidia-smi*.txt    GPUs, who uses them, their errors; only where there is a driver
  kernel.txt                    what the kernel said of memory, GPUs, disks, hung tasks since the run began
  plan.json                     what the host was asked to run
  status.json                   the state as its agent tells it, or told last; on the lead the whole run's
  report.json                   on the lead: what went wrong first, what followed, what was done, what was lost
  agent.json, processes.json    pids on record;  agent.log: the end of the agent's own log
  live.json, processes.txt      the processes that live: state, memory, what each waits for
  stacks/PID.txt                where the threads of each are
  connections.txt               their TCP connections; those that hang first, with what waits in the queues
  tasks/ROLE.INDEX/             how far the task was, how it ended, the end of the log of every attempt
  trace/, traces.txt            timelines of a step (train.trace), for ui.perfetto.dev, and where they are on the host
  logs.txt                      how long each log is, and how much of it is here
  missing.json                  what could not be looked at, and why
"""


def pack(path: Path, name: str, found: List[HostReport], launcher: Any) -> int:
    """Write the archive; return its size in bytes.

    Raises:
      UsageError: the archive cannot be written there.
    """
    root, now = path.name.split(".tar")[0], time.time()
    when = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(now))
    front = [("summary.txt", text(name, found, when)), ("README.txt", README), ("launcher.json", launcher)]
    partial = path.with_name(f".{path.name}.partial")
    try:
        handle = os.open(str(partial), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            for member, content in [*front, *_of_hosts(found)]:
                _add(archive, f"{root}/{member}", content, now)
        os.replace(str(partial), str(path))
        return path.stat().st_size
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; choose another place with -o") from error


def _of_hosts(found: List[HostReport]) -> Iterator[Tuple[str, Any]]:
    for each in found:
        folder = f"hosts/{each.host}"
        for member, content in sorted(each.files.items()):
            yield f"{folder}/{member}", content
        missing = {**each.missing, **({"host": each.problem} if each.problem else {})}
        clock = each.facts.clock and to_values(each.facts.clock)
        for member, content in (("clock.json", clock), ("missing.json", missing)):
            if content:
                yield f"{folder}/{member}", content


def _add(archive: tarfile.TarFile, name: str, content: Any, now: float) -> None:
    text = content if isinstance(content, str) else json.dumps(content, indent=1) + "\n"
    data = text.encode(errors="replace")
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = len(data), int(now), 0o600
    archive.addfile(member, io.BytesIO(data))
