"""The connections of some processes, with what waits in their queues."""

from typing import Any, Dict, Iterable, List, NamedTuple

from launch.agent.linux.ports import held_sockets
from launch.agent.linux.tcp_sockets import Row, tcp_rows

MOST = 4000  # rows that are told
STUCK = 20  # of those that hang, as values
HANGING = ("SYN_SENT", "SYN_RECV", "LAST_ACK", "CLOSE_WAIT", "FIN_WAIT1")


class Connection(NamedTuple):
    """A socket and who holds it."""

    pid: int
    row: Row

    @property
    def hangs(self) -> bool:
        """Return whether sent bytes are not acknowledged, or only one side has closed."""
        return self.row.retransmits > 0 or self.row.state in HANGING

    def __str__(self) -> str:
        row = self.row
        queues = f"{row.send_queue:>10} {row.receive_queue:>10} {row.retransmits:>4}"
        return f"{self.pid:>8} {row.state:12} {queues}  {_shown(row.local)} {_shown(row.remote)}"


def connections_of(pids: Iterable[int]) -> List[Connection]:
    """Return the connections that these processes hold, those that hang first."""
    holders = {inode: pid for pid in pids for inode in held_sockets([pid])}
    found = [Connection(holders[row.inode], row) for row in tcp_rows() if row.inode in holders]
    return sorted(found, key=lambda each: (not each.hangs, each.pid, each.row.remote))


def table(connections: List[Connection]) -> str:
    """Return a table with one line for each connection, ``MOST`` at most."""
    head = f"{'pid':>8} {'state':12} {'to send':>10} {'to read':>10} {'retr':>4}  here there"
    more = [f"and {len(connections) - MOST} more"] if len(connections) > MOST else []
    return "\n".join([head, *map(str, connections[:MOST]), *more])


def summary(connections: List[Connection]) -> Dict[str, Any]:
    """{"count", "hanging": how many hang, "first": some of those}"""
    hanging = [each for each in connections if each.hangs]
    first = [
        {"pid": each.pid, "state": each.row.state, "remote": _shown(each.row.remote), "to_send": each.row.send_queue}
        for each in hanging[:STUCK]
    ]
    return {"count": len(connections), "hanging": len(hanging), "first": first}


def _shown(address: Any) -> str:
    return f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"
