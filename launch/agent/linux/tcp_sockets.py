"""The kernel's table of TCP sockets of this host, as ``ss -tan`` shows it."""

import socket
import struct
from pathlib import Path
from typing import Iterator, List, NamedTuple, Tuple

_STATES = {
    "01": "ESTABLISHED", "02": "SYN_SENT", "03": "SYN_RECV", "04": "FIN_WAIT1", "05": "FIN_WAIT2", "06": "TIME_WAIT",
    "07": "CLOSE", "08": "CLOSE_WAIT", "09": "LAST_ACK", "0A": "LISTEN", "0B": "CLOSING", "0C": "NEW_SYN_RECV",
}  # fmt: skip


class Row(NamedTuple):
    """One socket. Queues are in bytes: what the other side has not acknowledged, and what nobody here has read.

    ``retransmits``: how often in a row what is sent was not answered in time. ``inode`` shows whose it is.
    """

    local: Tuple[str, int]
    remote: Tuple[str, int]
    state: str
    send_queue: int
    receive_queue: int
    retransmits: int
    inode: int


def tcp_rows(root: Path = Path("/proc/net")) -> Iterator[Row]:
    """Every TCP socket."""
    for table in ("tcp", "tcp6"):
        try:
            lines = (root / table).read_text().splitlines()[1:]
        except FileNotFoundError:
            continue
        for line in lines:
            yield _row(line.split())


def _row(fields: List[str]) -> Row:
    sent, received = fields[4].split(":")
    return Row(
        _address(fields[1]), _address(fields[2]), _STATES.get(fields[3], fields[3]), int(sent, 16), int(received, 16),
        int(fields[6], 16), int(fields[9]),
    )  # fmt: skip


def _address(text: str) -> Tuple[str, int]:
    """``0100007F:08AE`` is 127.0.0.1, port 2222: words of 32 bits in the machine's own order."""
    words, port = text.split(":")
    packed = b"".join(struct.pack("=I", int(words[at : at + 8], 16)) for at in range(0, len(words), 8))
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed), int(port, 16)
