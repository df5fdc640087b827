"""The archive of a diagnosis: only its owner can read it, and the summary comes first."""

import io
import json
import os
import tarfile
import time
from pathlib import Path
from typing import Any, Iterator, List, Optional, Tuple

from cluster.protocol.typed_json import to_values
from launch.diagnosis.collect import HostReport
from launch.diagnosis.summary import text
from launch.diagnosis.symptoms import run_status
from launch.errors import UsageError
from launch.page.run_page import document, facts
from launch.timeline.drawing import drawn
from launch.timeline.flights import TimeLine

README = """The archive of `launch diagnose`. It omits all secrets that the command knows: read it before you share it.

summary.txt                     start here: the run, the symptoms, a line for each host
launcher.json                   the launcher's machine: its Python, and the time
page.html                       the page of the run, with a drawing of the newest steps of all tasks
hosts/HOST/
  machine.json                  kernel, load, memory, pressure, limits, control groups, mounts
  disks.json                    free space and inodes of the important folders
  versions.json                 the tasks' Python, its packages, the hashes of the code
  clock.json                    difference of its clock from the launcher's, and the error of that
  environment.json              names of variables of a session there; values only of harmless variables
  gpus.json, nvidia-smi*.txt    GPUs, their users, their errors; only with a driver
  kernel.txt                    kernel messages on memory, GPUs, disks, hung tasks since the run began
  plan.json                     the launcher's request to the host
  status.json                   the newest status of its agent; on the lead that of the whole run
  report.json                   on the lead: first causes, consequences, actions, losses
  agent.json, processes.json    recorded pids;  agent.log: the end of the agent's own log
  live.json, processes.txt      live processes: state, memory, what each waits for
  stacks/PID.txt                stacks of their threads
  connections.txt               their TCP connections with the queues; those that hang come first
  tasks/ROLE.INDEX/             progress and outcome of the task, its newest steps (spans.json), the end of the log of
                                every attempt
  trace/, traces.txt            timelines of a step (train.trace), for ui.perfetto.dev, and their paths on the host
  logs.txt                      size of each log, and of its part in the archive
  missing.json                  missing sections, and the reasons
"""


def pack(path: Path, name: str, found: List[HostReport], launcher: Any, steps: Optional[TimeLine] = None) -> int:
    """Write the archive; return its size in bytes.

    Args:
      steps: the newest steps of all tasks, where they are known.

    Raises:
      UsageError: the archive cannot be written there.
    """
    root, now = path.name.split(".tar")[0], time.time()
    when = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(now))
    front = [("summary.txt", text(name, found, when, steps)), ("README.txt", README), ("launcher.json", launcher)]
    status = run_status(found)
    front += [("page.html", document(facts(status), steps=drawn(steps) if steps else None))] if status else []
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
