"""The kernel's messages about trouble, and the processes that the kernel killed when memory ran out.

The messages are about memory, GPUs, disks and hung tasks. ``troubles`` reads ``/dev/kmsg`` where this user may read
that file, and otherwise the journal. Where this user may read neither, ``troubles`` raises ``Unreadable``.

A SIGKILL alone does not show its sender. The kernel counts the processes that it kills when memory runs out. One count
covers the control group of this process (``memory.events`` of version 2, ``memory.oom_control`` of version 1). Another
count covers the whole machine (``/proc/vmstat``). A program needs no privilege to read the counts.

A count does not name the killed process. If a task is killed within ``RECENT_S`` of the count, but not by its agent,
the task is assumed to be that process. The kernel's messages name the process, where this user can read them.
"""

import contextlib
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional

from launch.agent.errors import AgentError
from launch.agent.linux.procfs import own_groups, text_of

KMSG = Path("/dev/kmsg")
MOST = 20_000  # messages to read
KEPT = 400  # newest messages of trouble to return
JOURNAL_S = 15.0
_SAID = {
    "memory": (
        r"out of memory|oom-kill|oom_reaper|invoked oom-killer", r"page allocation failure|killed process",
    ),
    "gpu": (r"\bNVRM\b|\bXid\b|nvidia.*(?:error|fail|fell off)", r"\bamdgpu\b.*(?:error|reset)"),
    "disk": (
        r"I/O error|no space left|remounting .*read-only", r"\bEXT4-fs\b.*(?:error|warning)",
        r"\bXFS\b.*(?:error|corrupt|shutdown)", r"\bnvme\b.*(?:timeout|reset)",
    ),
    "network disk": (
        r"\bnfs\b.*(?:not responding|timed out|server)", r"\b(?:lustre|ceph|CIFS)\b.*(?:error|lost|timeout)",
    ),
    "hung task": (r"blocked for more than|hung_task|soft lockup|hard LOCKUP|rcu.*stall|watchdog: BUG",),
    "crash": (r"segfault at|general protection|traps: |\bMCE\b|Machine check|Hardware Error",),
    "network": (
        r"link is down|NETDEV WATCHDOG|nf_conntrack: table full",
        r"neighbou?r table overflow|possible SYN flooding",
    ),
}  # fmt: skip
TROUBLE = {kind: re.compile("|".join(patterns), re.IGNORECASE) for kind, patterns in _SAID.items()}


class Message(NamedTuple):
    """A message of the kernel. ``time`` is Unix time in seconds; ``kind`` is a key of ``TROUBLE``."""

    time: float
    kind: str
    text: str


class Unreadable(AgentError):
    """The error that this user cannot read the kernel's messages. Its text contains advice."""


def troubles(since: float, messages: Path = KMSG) -> List[Message]:
    """Return the kernel's messages about trouble since the Unix time ``since``: the newest, at most ``KEPT``.

    Raises:
      Unreadable: this user can read neither the file ``messages`` nor the journal.
    """
    try:
        found = list(_of_kernel(messages, since))
    except OSError as error:
        found = list(_of_journal(since, f"{messages}: {error.strerror}"))
    return found[-KEPT:]


def raw(path: Path) -> Iterator[bytes]:
    """Yield the messages in the kernel's buffer, oldest first, in the form ``6,339,5140900,-;text``. Raises OSError."""
    handle = os.open(str(path), os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield from _read_all(handle)
    finally:
        os.close(handle)


def _read_all(handle: int) -> Iterator[bytes]:
    """Yield at most ``MOST`` of the messages that can be read now. Raises OSError."""
    for _ in range(MOST):
        try:
            message = os.read(handle, 8192)  # one message a call
        except BlockingIOError:
            return  # no more messages
        except BrokenPipeError:
            continue  # this message was overwritten meanwhile; the next can be read
        if not message:
            return
        yield message


class NewMessages:
    """A reader of the kernel's messages from now on. It returns no messages if this user may not read them."""

    def __init__(self, path: Path = KMSG):
        self._handle: Optional[int] = None
        with contextlib.suppress(OSError):
            self._handle = os.open(str(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._handle, 0, os.SEEK_END)

    def read(self) -> str:
        """Return the messages since the last call."""
        found: List[bytes] = []
        with contextlib.suppress(OSError):  # messages before the error count
            found.extend(() if self._handle is None else _read_all(self._handle))
        return b"\n".join(found).decode(errors="replace")


def kind_of(text: str) -> Optional[str]:
    """Return the kind of trouble that a message reports, a key of ``TROUBLE``; None if it reports no trouble."""
    return next((kind for kind, pattern in TROUBLE.items() if pattern.search(text)), None)


def _of_kernel(path: Path, since: float) -> Iterator[Message]:
    booted = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)  # the kernel's clock, too, stops in sleep
    for message in raw(path):
        for line in message.decode(errors="replace").split("\n"):
            head, _, text = line.partition(";")
            fields, kind = head.split(","), kind_of(text)
            if kind is None or len(fields) < 3 or not fields[2].isdigit():
                continue
            at = booted + int(fields[2]) / 1e6
            if at >= since:
                yield Message(at, kind, text)


def _of_journal(since: float, otherwise: str) -> Iterator[Message]:
    argv = ["journalctl", "--dmesg", "--no-pager", "--quiet", f"--since=@{int(since)}", "--output=short-unix"]
    try:
        told = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=JOURNAL_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unreadable(f"{otherwise}, and journalctl does not answer ({type(error).__name__}); {_ADVICE}") from error
    if told.returncode:
        raise Unreadable(f"{otherwise}, and journalctl refuses; {_ADVICE}")
    for line in told.stdout.decode(errors="replace").splitlines()[-MOST:]:
        at, _, text = line.partition(" ")
        kind = kind_of(text)
        if kind is not None and at.replace(".", "", 1).isdigit():
            yield Message(float(at), kind, text)


_ADVICE = "to read the kernel's messages, join the group adm, or set sysctl kernel.dmesg_restrict=0"


RECENT_S = 5.0
_COUNT = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


class MemoryKills:
    """A watch on the kernel's count of processes killed when memory ran out. ``took`` reports each kill once."""

    def __init__(self, root: Path = Path("/"), messages: Optional[Path] = None):
        self._counts = counters(root)
        self._messages = messages or root / "dev/kmsg"
        self._seen = self._read()
        self._recent: List[float] = []  # the times at which kills were detected

    def look(self, now: float) -> None:
        """Record how many processes the kernel has killed since the last call."""
        count = self._read()
        self._recent = [at for at in self._recent if now - at <= RECENT_S] + [now] * (count - self._seen)
        self._seen = count

    def took(self, pid: int, now: float) -> bool:
        """Return whether the kernel seems to have killed the process ``pid`` because memory ran out.

        Call this when the process has just been found killed. If the kernel has no counts, its messages decide.
        """
        self.look(now)
        if self._recent:
            self._recent.pop(0)
            return True
        return not self._counts and names_process(self._messages, pid)

    def explained(self, count: int, now: float) -> None:
        """Drop ``count`` kills whose processes the caller knows, so that ``took`` does not report them.

        The kernel counts a kill in a task's control group for the whole machine, too.
        """
        self.look(now)
        del self._recent[:count]

    def _read(self) -> int:
        return max((_count(path) for path in self._counts), default=0)


def counters(root: Path) -> List[Path]:
    """Return the files below ``root`` in which the kernel counts the processes that it killed when memory ran out."""
    found = [root / "proc/vmstat"]
    for controllers, path in own_groups(root):
        if not controllers:
            found += [root / "sys/fs/cgroup" / path / "memory.events"]
        elif "memory" in controllers:
            found += [root / "sys/fs/cgroup/memory" / path / "memory.oom_control"]
    return [path for path in found if _COUNT.search(text_of(path))]


def names_process(messages: Path, pid: int) -> bool:
    """Return whether the kernel's messages report the process ``pid`` as killed; False for unreadable messages."""
    said = f"Killed process {pid} ".encode()
    try:
        return any(said in message for message in raw(messages))
    except OSError:
        return False


def _count(path: Path) -> int:
    found = _COUNT.search(text_of(path))
    return int(found.group(1)) if found else 0
