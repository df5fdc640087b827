"""What an attacker does, as a program of its own: ``python intruder.py KIND --user UID --host NAME --port N …``.

It becomes that user before it does anything, and prints one line of JSON with what it saw at last.
"""

import argparse
import contextlib
import encodings.idna  # noqa: F401 - for names of hosts: the other user may not be able to read it
import json
import os
import random
import resource
import selectors
import socket
import time
from typing import Any, Callable, Dict, List

BLOCK = b"x" * 65536


def main() -> None:
    options = _options()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    if options.user:
        os.setgroups([])
        os.setgid(options.user)
        os.setuid(options.user)
    print(json.dumps(KINDS[options.kind](options)), flush=True)


def _options() -> Any:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("--user", type=int, default=0)
    parser.add_argument("--host", default="localhost")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--file", default="")
    return parser.parse_args()


def _caller(options: Any) -> socket.socket:
    return socket.create_connection((options.host, options.port), 10.0)


def _callers(options: Any) -> List[socket.socket]:
    """As many connections as can be had, held open."""
    found = []
    for _ in range(options.count):
        with contextlib.suppress(OSError):
            found.append(_caller(options))
    return found


def _until_dropped(callers: List[socket.socket], seconds: float) -> int:
    """How many of them the other side has closed by then."""
    waiting, open_ones, until = selectors.DefaultSelector(), len(callers), time.monotonic() + seconds
    for caller in callers:
        waiting.register(caller, selectors.EVENT_READ)
    while open_ones and time.monotonic() < until:
        for key, _ in waiting.select(0.2):
            ended = True
            with contextlib.suppress(OSError):
                ended = not key.fileobj.recv(65536)  # type: ignore[union-attr]
            if ended:
                waiting.unregister(key.fileobj)
                open_ones -= 1
    return len(callers) - open_ones


def idle(options: Any) -> Dict[str, Any]:
    """Connections that say nothing."""
    callers = _callers(options)
    return {"connected": len(callers), "dropped": _until_dropped(callers, options.seconds)}


def _each(options: Any, act: Callable[[socket.socket, random.Random], None]) -> Dict[str, Any]:
    draw, answers = random.Random(7), 0
    for _ in range(options.count):
        with contextlib.suppress(OSError), _caller(options) as caller:
            caller.settimeout(options.seconds)
            act(caller, draw)
            with contextlib.suppress(OSError):
                answers += caller.recv(65536).count(b"\n") > 1  # its nonce is one; what follows is for members only
    return {"connected": options.count, "answered": answers}


def garbage(options: Any) -> Dict[str, Any]:
    """Bytes of no meaning, and lines of other protocols."""
    known = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"[" * 4000 + b"\n",
        b'{"a":' * 800 + b"\n",
        b"\n" * 50,
    ]

    def act(caller: socket.socket, draw: random.Random) -> None:
        size = draw.randrange(1, 3000)
        caller.sendall(draw.choice([*known, bytes(draw.randrange(256) for _ in range(size)) + b"\n"]))

    return _each(options, act)


def forged(options: Any) -> Dict[str, Any]:
    """Greetings with a wrong proof, and messages behind them."""

    def act(caller: socket.socket, draw: random.Random) -> None:
        nonce = json.loads(caller.makefile("rb").readline().decode())["nonce"]
        proof = draw.choice([nonce, "0" * 64, "", "ä"])
        greeting = {
            "host": "h2",
            "incarnation": "0",
            "serves": "",
            "purpose": "messages",
            "nonce": nonce,
            "proof": proof,
        }
        end = {"message": "Exited", "task": "worker:1", "attempt": 0, "exit_code": 1}
        caller.sendall("".join(json.dumps(each) + "\n" for each in (greeting, end)).encode())

    return _each(options, act)


def replayed(options: Any) -> Dict[str, Any]:
    """What a member has said before, from its first byte on."""
    with open(options.file, "rb") as file:
        recorded = file.read()
    return {**_each(options, lambda caller, draw: caller.sendall(recorded)), "bytes": len(recorded)}


def slow(options: Any) -> Dict[str, Any]:
    """A byte a second on every connection."""
    callers, until = _callers(options), time.monotonic() + options.seconds
    while time.monotonic() < until:
        for caller in callers:
            with contextlib.suppress(OSError):
                caller.send(b" ")
        time.sleep(1.0)
    return {"connected": len(callers), "dropped": _until_dropped(callers, 1.0)}


def huge(options: Any) -> Dict[str, Any]:
    """Lines without an end, on all connections at once."""
    callers, sent, until = _callers(options), 0, time.monotonic() + options.seconds
    for caller in callers:
        caller.setblocking(False)
    while time.monotonic() < until:
        for caller in callers:
            with contextlib.suppress(OSError):
                sent += caller.send(BLOCK)
        time.sleep(0.01)
    return {"connected": len(callers), "sent_mib": sent >> 20}


def record(options: Any) -> Dict[str, Any]:
    """Keep in a file what comes to the port from ``--host``'s first connection, as whoever sees the network can."""
    network, kept, until = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800)), b"", 0.0
    network.settimeout(0.5)
    address = socket.gethostbyname(options.host)
    source, ending = 0, time.monotonic() + options.seconds
    while time.monotonic() < (until or ending):
        with contextlib.suppress(socket.timeout):
            packet, where = network.recvfrom(65536)
            head = (packet[0] & 15) * 4
            ports = int.from_bytes(packet[head : head + 2], "big"), int.from_bytes(packet[head + 2 : head + 4], "big")
            data = packet[head + (packet[head + 12] >> 4) * 4 : int.from_bytes(packet[2:4], "big")]
            comes = where[2] == socket.PACKET_HOST and packet[9] == 6 and ports[1] == options.port
            if comes and data and socket.inet_ntoa(packet[12:16]) == address and source in (0, ports[0]):
                source, kept, until = ports[0], kept + data, until or time.monotonic() + 3.0
    with open(options.file, "wb") as file:
        file.write(kept)
    return {"bytes": len(kept)}


def read(options: Any) -> Dict[str, Any]:
    """Everything under a folder that can be read, and every socket there that answers."""
    found = []
    for folder, _, names in os.walk(options.file):
        for name in names:
            with contextlib.suppress(OSError), open(os.path.join(folder, name), "rb") as file:
                found += [os.path.join(folder, name)] if file.read(1) else []
    return {"read": found}


def plant(options: Any) -> Dict[str, Any]:
    """Code where the run's own will lie, given as ``WORKDIR:DIGEST,DIGEST``, that leaves a mark where it runs."""
    workdir, _, digests = options.file.partition(":")
    mark = "import os; open('/tmp/owned', 'w').write(str(os.getuid()))\n"
    for digest in digests.split(","):
        for name in ("launch/__init__.py", "launch/agent/__init__.py", "launch/agent/__main__.py", "task.py"):
            path = os.path.join(workdir, "code", digest, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(mark)
            os.chmod(path, 0o755)
    for name in ("runs", "locks"):
        os.makedirs(os.path.join(workdir, name), exist_ok=True)
    return {"planted": digests.count(",") + 1}


KINDS: Dict[str, Callable[[Any], Dict[str, Any]]] = {
    each.__name__: each for each in (idle, garbage, forged, replayed, slow, huge, record, read, plant)
}

if __name__ == "__main__":
    main()
