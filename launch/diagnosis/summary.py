"""The findings of a diagnosis: in words, as JSON, and as an archive that only its owner can read."""

import io
import json
import os
import tarfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from cluster.protocol.quantity import quantity
from cluster.protocol.typed_json import to_values
from launch.agent.wire.diagnose_request import Live
from launch.diagnosis.collect import HostReport
from launch.diagnosis.symptoms import Diagnosis
from launch.errors import UsageError
from launch.page.run_page import document, facts
from launch.teardown import by_host
from launch.timeline import drawing
from launch.timeline.drawing import drawn
from launch.timeline.waits import stall
from launch.view.console import fold

MOST_LINES = 40  # lines with causes from a status
README = """The archive of `launch diagnose`. It omits all secrets that the command knows: read it before you share it.

summary.txt                     start here: the run, the symptoms, a line for each host
launcher.json                   the launcher's machine: its Python, and the time
page.html                       the page of the run, with a drawing of the newest steps of all tasks
hosts/HOST/
  machine.json                  kernel, load, memory, pressure, limits, control groups, mounts
  disks.json                    free space and inodes of the important folders
  versions.json                 the tasks' Python, its packages, the hashes of the code
  clock.json                    how far its clock is from the launcher's, and the error of this number
  environment.json              environment variables of a session: all names, only harmless values
  gpus.json, nvidia-smi*.txt    GPUs, their users, their errors; only with a driver
  kernel.txt                    kernel messages on memory, GPUs, disks, hung tasks since the run began
  plan.json                     the launcher's request to the host
  status.json                   the newest status of its agent; on the lead that of the whole run
  report.json                   on the lead: first causes, consequences, actions, losses
  agent.json, processes.json    recorded pids;  agent.log: the end of the agent's own log
  live.json, processes.txt      live processes: state, memory, what each waits for
  stacks/PID.txt                stacks of their threads
  connections.txt               their TCP connections and queues; hanging connections come first
  tasks/ROLE.INDEX/             progress and outcome of the task, its newest steps (spans.json), the end of the log of
                                every attempt
  trace/, traces.txt            timelines of a step (train.trace), for ui.perfetto.dev, and their paths on the host
  logs.txt                      size of each log, and of its part in the archive
  missing.json                  missing sections, and the reasons
"""


@dataclass(frozen=True)
class Missing:
    """A section of a host's report that is missing from the archive.

    Attributes:
      section: Section that is missing.
      why: Reason why it is missing.
    """

    section: str
    why: str


@dataclass(frozen=True)
class DiagnosedHost:
    """A host of ``diagnose --json``.

    Attributes:
      host: Name of a host of the file.
      error: Problem that kept the host from a complete answer; else null.
      run: Full name of the host's newest run of this name; null without one.
      files: Names of the host's files in the archive.
      looks_wrong: Symptoms of the host, one line each.
    """

    host: str
    error: Optional[str]
    run: Optional[str]
    files: List[str]
    missing: List[Missing]
    looks_wrong: List[str]


@dataclass(frozen=True)
class DiagnoseReport:
    """The object of ``diagnose --json``.

    Attributes:
      run: Full name of the newest run that a host reports; null where no run of this name has existed.
      archive: Path of the archive.
      bytes: Size of the archive in bytes.
      steps: Newest steps of all tasks in words: the tasks that wait, their blockers, and since when. Empty if unknown.
    """

    run: Optional[str]
    archive: str
    bytes: int
    steps: List[str]
    hosts: List[DiagnosedHost]


def pack(path: Path, found: Diagnosis, launcher: Any) -> int:
    """Write the archive, with the summary as its first file; return its size in bytes.

    Raises:
      UsageError: the archive cannot be written to ``path``.
    """
    root, now = path.name.split(".tar")[0], time.time()
    when = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(now))
    front = [("summary.txt", text(found, when)), ("README.txt", README), ("launcher.json", launcher)]
    if found.status:
        page = document(facts(found.status), steps=drawn(found.steps) if found.steps else None)
        front.append(("page.html", page))
    partial = path.with_name(f".{path.name}.partial")
    try:
        handle = os.open(str(partial), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            for member, content in [*front, *_of_hosts(found.hosts)]:
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


def text(found: Diagnosis, when: str) -> str:
    """Return the text of ``summary.txt``."""
    counts = Counter(host for host, _ in found.signs)
    parts = [
        [f"{found.run or found.name}, at {when}", ""],
        ["# The run", *_run(found), ""],
        ["# Symptoms", *(by_host(found.signs, []) or ["no known symptom"]), ""],
        *([["# Steps", *drawing.lines(found.steps), ""]] if found.steps else []),
        ["# Hosts", *by_host(((each.host, _host(each, counts[each.host])) for each in found.hosts), []), ""],
    ]
    return "\n".join(line for part in parts for line in part)


def _run(found: Diagnosis) -> Iterator[str]:
    status = found.status
    if status is None:
        was_there = any(each.run for each in found.hosts)
        yield "no host reports the state of the run" if was_there else "no run of this name has been on these hosts"
        return
    yield f"state: {status.state}"
    if status.global_step is not None:
        of = f" of {status.steps}" if status.steps else ""
        yield f"step: {status.global_step}{of}, last checkpoint at {status.checkpoint_step}"
    if status.cause:
        yield f"cause: {status.cause}"
    reports = [each.facts.report for each in found.hosts if each.facts.report and each.run == found.run]
    yield from (reports[0].words or []) if reports else []
    ill = [task for task in status.tasks if task.cause][:MOST_LINES]
    yield from (f"{task.title} {task.state}: {task.cause}" for task in ill)


def _host(host: HostReport, count: int) -> str:
    if not host.files:
        return f"no answer: {host.problem}"
    live = host.facts.live or Live(None, [])
    tasks = {each.task for each in live.processes if each.task}
    agent = "no agent" if live.agent is None else "its agent runs"
    living = f"{len(tasks)} {'task runs' if len(tasks) == 1 else 'tasks run'}" if tasks else "no task runs"
    wrong = quantity(count, "symptom") if count else "no symptom"
    return f"{agent}, {living}; {wrong}"


def as_values(found: Diagnosis, archive: str, size: int) -> Dict[str, Any]:
    """Return the object of ``diagnose --json``."""
    by: Dict[str, List[str]] = defaultdict(list)
    for host, sign in found.signs:
        by[host].append(sign)
    hosts = [_diagnosed(each, by[each.host]) for each in found.hosts]
    steps = drawing.lines(found.steps) if found.steps else []
    return to_values(DiagnoseReport(found.run, archive, size, steps, hosts))


def _diagnosed(host: HostReport, looks_wrong: List[str]) -> DiagnosedHost:
    missing = [Missing(section, why) for section, why in sorted(host.missing.items())]
    return DiagnosedHost(host.host, host.problem, host.run, sorted(host.files), missing, looks_wrong)


def spoken(found: Diagnosis, archive: str, size: int) -> List[str]:
    """Return the lines that the verb prints: the symptoms, and the task that others wait for."""
    now = stall(found.steps) if found.steps else None
    silent = [each.host for each in found.hosts if not each.files]
    answered = f"{len(found.hosts) - len(silent)} of {len(found.hosts)} hosts answered"
    of_silent = f"; no answer from {fold(silent)}" if silent else ""
    return [
        *by_host(found.signs, []),
        *(drawing.stalled(now) if now else []),
        f"{archive}: {answered}, {size / 1e6:.1f} MB{of_silent}; start with its summary.txt",
    ]
