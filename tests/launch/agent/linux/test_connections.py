"""The connections of processes: read from the kernel's own table, those that hang first."""

import os
import socket
from pathlib import Path
from typing import List, Tuple

from launch.agent.linux import sockets
from launch.agent.linux.sockets import Connection, SocketRow, tcp_rows
from tests.support.waiting import eventually

TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:08AE 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0
   1: 0100007F:08AE 0200007F:C350 01 00000010:00000020 01:00000014 00000003     0        0 12 1 0 20 4 30 10 -1
"""


def row(state: str = "ESTABLISHED", retransmits: int = 0) -> SocketRow:
    return SocketRow(("10.0.0.1", 5), ("10.0.0.2", 2222), state, 7, 0, retransmits, 1)


def test_the_kernel_s_table_is_read(tmp_path: Path) -> None:
    (tmp_path / "tcp").write_text(TABLE)
    listening, connected = tcp_rows(tmp_path)
    assert (listening.local, listening.state, listening.inode) == (("127.0.0.1", 2222), "LISTEN", 11)
    assert (connected.remote, connected.state) == (("127.0.0.2", 50000), "ESTABLISHED")
    assert (connected.send_queue, connected.receive_queue, connected.retransmits) == (16, 32, 3)


def test_what_a_process_holds_is_found_with_what_waits_to_be_read() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        with socket.create_connection(server.getsockname()) as client:
            served, _ = server.accept()
            with served:
                client.sendall(b"x" * 100)
                eventually("what was sent", lambda: client.getsockname() in unread(100))


def unread(size: int) -> List[Tuple[str, int]]:
    """Who has sent so many bytes that this process has not read."""
    return [each.row.remote for each in sockets.connections_of([os.getpid()]) if each.row.receive_queue == size]


def test_a_connection_hangs_that_is_not_answered_or_closed_on_one_side_alone() -> None:
    assert Connection(1, row("SYN_SENT")).hangs and Connection(1, row(retransmits=2)).hangs
    assert not Connection(1, row()).hangs


def test_what_hangs_is_counted_and_shown() -> None:
    held = [Connection(7, row("SYN_SENT")), Connection(8, row())]
    assert sockets.connection_summary(held) == {
        "count": 2, "hanging": 1,
        "first": [{"pid": 7, "state": "SYN_SENT", "remote": "10.0.0.2:2222", "to_send": 7}],
    }  # fmt: skip
    assert sockets.connection_table(held).splitlines()[1].split() == [
        "7", "SYN_SENT", "7", "0", "0", "10.0.0.1:5", "10.0.0.2:2222",
    ]  # fmt: skip
