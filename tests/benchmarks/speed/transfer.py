"""What two sockets of Python get out of the network: a check of the rate that the bounds are computed from."""

import subprocess
import sys

from tests.support.hosts import FakeHosts

_PORT, _SECONDS, _PATIENCE_S = 2230, 2.0, 60.0

# Both ends send and receive the same at once; the one that connects prints the seconds until both are through.
_PEER = """
import socket, sys, threading, time
address, port, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if address:
    peer = socket.create_connection((address, port), timeout=30)
else:
    server = socket.socket()
    server.bind(("", port))
    server.listen(1)
    print("listening", flush=True)
    peer, _ = server.accept()
began = time.monotonic()
sender = threading.Thread(target=peer.sendall, args=(bytes(size),))
sender.start()
left = size
while left:
    left -= len(peer.recv(1 << 20))
sender.join()
print(time.monotonic() - began, flush=True)
"""


def bytes_per_s(hosts: FakeHosts, mbit: float) -> float:
    """What a connection between the first two hosts carries each way, while it carries as much the other way."""
    size = str(int(mbit * 1e6 / 8 * _SECONDS))
    with hosts[0].popen(
        [sys.executable, "-c", _PEER, "", str(_PORT), size], stdout=subprocess.PIPE, text=True
    ) as listener:
        try:
            if listener.stdout is not None:
                listener.stdout.readline()
            argv = [sys.executable, "-c", _PEER, hosts[0].address, str(_PORT), size]
            return int(size) / float(hosts[1].run(argv, timeout_s=_PATIENCE_S).stdout)
        finally:
            listener.kill()
