"""Process groups, and signals that never reach an unrelated process.

A task is the leader of its own session, so its pid is also the number of its process group. While the leader is not
reaped, the kernel cannot reuse that number. So the functions here signal a group only before its leader is reaped.
Later, and from other processes, a process is identified by pid *and* start time.
"""

import contextlib
import ctypes
import errno
import os
import signal
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from cluster.protocol.shared_files import open_to_append
from launch.agent.linux.open_files import restore_first_limit
from launch.agent.linux.procfs import text_of, waits_in

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)
_OOM_SCORE = "/proc/self/oom_score_adj"
OOM_RAISE = 100  # of 1000: as if a task used a tenth of the host's memory more than it does


class Process(NamedTuple):
    """A line of the process table. ``start`` is in clock ticks since the machine booted."""

    pid: int
    parent: int
    group: int
    session: int
    state: str
    start: int


class ProcessTable(List[Process]):
    """A process table, with the environments of its processes. Each environment is read once, when it is needed."""

    def __init__(self, processes: Iterable[Process]):
        super().__init__(processes)
        self.environment = lru_cache(maxsize=None)(environment)


def inspect(pid: int) -> Optional[Process]:
    """Return the process with this pid; None where no such process exists."""
    try:
        with open(f"/proc/{pid}/stat") as file:  # not through a Path, which doubles the time: there may be thousands
            text = file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    # The name, in parentheses, may itself contain spaces and parentheses.
    fields = text[text.rindex(")") + 2 :].split()
    return Process(pid, int(fields[1]), int(fields[2]), int(fields[3]), fields[0], int(fields[19]))


def table() -> ProcessTable:
    """Return every process that this process can see."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return ProcessTable(process for process in map(inspect, pids) if process)


def descendants(processes: Iterable[Process], *ancestors: int) -> List[Process]:
    """Return those of ``processes`` that are alive and descend from the pids ``ancestors``."""
    children: Dict[int, List[Process]] = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process)
    found, unseen = [], list(ancestors)
    while unseen:
        below = children.get(unseen.pop(), [])
        found += [process for process in below if process.state != "Z"]
        unseen += [process.pid for process in below]
    return sorted(found)


def command_line(pid: int) -> str:
    """Return the command line of a process as one readable line; "" if it cannot be read."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""


def environment(pid: int) -> Dict[str, str]:
    """Return the environment that a process was started with; empty where this user may not read it."""
    try:
        pairs = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def wait_channel(pid: int) -> str:
    """Return the kernel function that a process waits in; ``the kernel`` where this user may not read it."""
    return waits_in(Path(f"/proc/{pid}")) or "the kernel"


def status(pid: int) -> Dict[str, str]:
    """Return the fields of ``/proc/PID/status``, as in ``{"VmRSS": "1024 kB"}``; {} for an ended process."""
    rows = (line.partition(":") for line in text_of(Path(f"/proc/{pid}/status")).splitlines())
    return {name: value.strip() for name, _, value in rows}


def is_same(pid: int, start: int) -> bool:
    """Return whether the process with this pid and this start time still runs."""
    process = inspect(pid)
    return process is not None and process.start == start and process.state != "Z"


def show_as(title: str) -> None:
    """Make ps show ``title`` for this process.

    The title overwrites the process's arguments, and is cut to their length.
    """
    text = Path("/proc/self/stat").read_text()
    first, last = (int(field) for field in text[text.rindex(")") + 2 :].split()[45:47])
    if last - first > 1:  # not on a kernel that does not report the place
        ctypes.memmove(first, title.encode()[: last - first - 1].ljust(last - first, b"\0"), last - first)


def adopt_orphans() -> None:
    """Make this process the parent of every descendant that loses its parent."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with(parent: int) -> Callable[[], None]:
    """Return a function that a child of ``parent`` must call before its program begins.

    The returned function makes the kernel kill the child when the parent's thread ends. It also restores this process's
    original limit of open files.
    """

    def prepare() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the parent died before the line above took effect
            os._exit(1)
        restore_first_limit()

    return prepare


def be_chosen_first() -> None:
    """Make the kernel kill this process and its children before its parent when memory runs out."""
    with contextlib.suppress(OSError, ValueError), open(_OOM_SCORE, "r+") as file:
        raised = min(1000, int(file.read()) + OOM_RAISE)
        file.seek(0)
        file.write(str(raised))


def start(
    argv: Sequence[str],
    env: Mapping[str, str],
    folder: Path,
    log: Path,
    source: int = subprocess.DEVNULL,
    before: Callable[[], None] = lambda: None,
) -> "subprocess.Popen[bytes]":
    """Start ``argv`` as ``spawn`` does, and append its output to ``log``.

    Where the disk takes no new file, the process starts without a log: a missing log must not end a task.

    Raises:
      OSError: as for ``spawn``, or the log cannot be opened.
    """
    with _output(log) as output:
        return spawn(argv, env, folder, output.fileno(), source, before)


def _output(log: Path) -> BinaryIO:
    try:
        return open_to_append(log)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        return open(os.devnull, "ab", buffering=0)


def spawn(
    argv: Sequence[str],
    env: Mapping[str, str],
    folder: Path,
    output: int,
    source: int = subprocess.DEVNULL,
    before: Callable[[], None] = lambda: None,
) -> "subprocess.Popen[bytes]":
    """Start ``argv`` as the leader of its own session.

    The kernel kills the new process if the caller dies. When memory runs out, the kernel kills the new process before
    the caller.

    ``output`` and ``source`` are the file descriptors of the process's output and standard input, or
    ``subprocess.PIPE``. The new process calls ``before``, and then its program begins.

    Call this function from the main thread: the kernel sends the parent-death signal when the calling thread ends.

    Raises:
      OSError: the program or its folder cannot be opened.
    """
    bound = die_with(os.getpid())

    def prepare() -> None:
        bound()
        be_chosen_first()
        before()

    return subprocess.Popen(
        list(argv), env=dict(env), cwd=str(folder), stdin=source, stdout=output,
        stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=prepare,
    )  # fmt: skip


def has_exited(pid: int) -> bool:
    """Return whether a child has ended. The child is not reaped, so that the kernel does not reuse its pid."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def group_members(leader: int) -> List[Process]:
    """Return the living processes in the group or the session of the pid ``leader``."""
    return [p for p in table() if leader in (p.group, p.session) and p.state != "Z"]


def signal_group(leader: int, number: int) -> None:
    """Send the signal ``number`` to each living process in the group or session of ``leader``, a pid not yet reaped."""
    for process in group_members(leader):
        signal_process(process.pid, process.start, number)


def signal_process(pid: int, start: int, number: int) -> None:
    """Send the signal ``number`` to the process of this pid and start time, if it still runs."""
    with contextlib.suppress(ProcessLookupError), _handle_of(pid) as handle:
        if is_same(pid, start):
            os.kill(pid, number) if handle is None else signal.pidfd_send_signal(handle, number)  # type: ignore


@contextlib.contextmanager
def _handle_of(pid: int) -> Iterator[Optional[int]]:
    """Hold a handle of a process; None before Python 3.9 and Linux 5.3.

    A signal through the handle never reaches a later process of the same pid.
    """
    try:
        handle: Optional[int] = os.pidfd_open(pid)  # type: ignore[attr-defined]
    except ProcessLookupError:
        raise
    except (AttributeError, OSError):
        handle = None
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def strays(parent: int, known: Sequence[int]) -> List[Process]:
    """Return the orphans that ``parent`` has adopted: its living children, except the pids ``known``."""
    return [p for p in table() if p.parent == parent and p.pid not in known and p.state != "Z"]


def describe_exit(code: Optional[int]) -> str:
    """Return a text such as ``exit code 3`` or, for a negative code, ``killed by SIGKILL``.

    The text for None is ``never started``.
    """
    if code is None:
        return "never started"
    if code >= 0:
        return f"exit code {code}"
    names: Dict[int, str] = {int(s): s.name for s in signal.Signals}
    return f"killed by {names.get(-code, f'signal {-code}')}"
