"""What /proc tells about the inside of a fake host, read from outside."""

from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional, Tuple

_LISTEN = "0A"


class Process(NamedTuple):
    """A process of a host; ``pid`` is the host's own number for it."""

    pid: int
    argv: Tuple[str, ...]


class Traffic(NamedTuple):
    """Bytes that a host's network card has received and sent since it booted, Ethernet's headers with them."""

    received: int
    sent: int


def traffic(init: int, card: str = "eth0") -> Traffic:
    """What the card of the host whose first process is ``init`` here has counted."""
    rows = Path(f"/proc/{init}/net/dev").read_text().splitlines()
    counts = next(row.partition(":")[2].split() for row in rows if row.partition(":")[0].strip() == card)
    return Traffic(int(counts[0]), int(counts[8]))


def processes(init: int) -> List[Process]:
    """Processes of the host whose first process is ``init`` here, less init and sshd."""
    inside = Path(f"/proc/{init}/root/proc")
    pids = sorted(int(entry.name) for entry in inside.iterdir() if entry.name.isdigit())
    found = (_process(inside / str(pid)) for pid in pids if pid != 1)
    return [process for process in found if process is not None and not _of_sshd(process)]


def _process(folder: Path) -> Optional[Process]:
    """None for one that has ended, or has ended but for being waited for."""
    try:
        text = (folder / "cmdline").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Process(int(folder.name), tuple(text.rstrip("\0").split("\0"))) if text else None


def _of_sshd(process: Process) -> bool:
    """Its listener and the processes of its sessions, which rename themselves "sshd: root@notty"."""
    program = process.argv[0].partition(":")[0]
    return program.rpartition("/")[2] in ("sshd", "sshd-session", "sshd-auth")


def listening_ports(init: int) -> List[int]:
    """TCP ports in state LISTEN in the network of process ``init``, in order."""
    return sorted({port for table in ("tcp", "tcp6") for port in _listening(Path(f"/proc/{init}/net/{table}"))})


def _listening(table: Path) -> Iterator[int]:
    """Rows look like ``0: 0100007F:1F90 00000000:0000 0A …``: own address, peer, state."""
    if table.exists():
        for row in table.read_text().splitlines()[1:]:
            own, _, state = row.split()[1:4]
            if state == _LISTEN:
                yield int(own.rpartition(":")[2], 16)
