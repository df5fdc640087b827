"""The guard: a separate nftables table that lets only the cluster's hosts reach the run's ports.

Of this host's users, only the run's user and root reach the ports. The guard is in force before any task listens.

A process of nft, which the agent keeps running, *owns* the table (Linux 5.12 or newer). The kernel removes the table
when nft ends, and nft ends when its stdin is closed. So however the agent ends, no rule is left behind, and no cleanup
is needed. A ``flush ruleset`` of another user does not touch the table either.

The rules only drop packets, so packets that other tables drop stay dropped.
"""

import contextlib
import os
import shutil
import subprocess
import time
from typing import Any, Iterator, List, Optional, Sequence, Set, Tuple

from launch.agent.errors import AgentError
from launch.agent.linux.open_files import readable
from launch.agent.network.resolver import resolve
from launch.agent.wire.run_request import RunRequest

NFT_S = 20.0  # for nft to accept the rules
LOOKUP_S = 20.0
LEAVE_S = 5.0  # for nft to end
AT_ONCE = 200  # elements of a set in one line
_CHATTER = ("nft>", "sudo: unable to resolve host")  # some builds print their input
_ADVICE = "ask an administrator to allow `sudo -n nft` for this user, or remove the key guard"


class Unguarded(AgentError):
    """The error that this host cannot guard the run's ports, with the reason and the remedy."""

    def __init__(self, reason: str, mend: str):
        super().__init__(f"{reason}; {mend}")
        self.reason, self.mend = reason, mend


class Refused(AgentError):
    """The error that nft refuses the guard's rules. Its text is nft's output."""


class Guard:
    """A running nft that owns ``table``. ``close``, and the end of this process, remove the table.

    ``pid`` is the pid of nft. When nft ends, the table ends, too, and the file of ``fileno`` becomes readable.
    """

    def __init__(self, argv: Sequence[str], table: str):
        self._table, self._unread = table, b""
        self._nft: Any = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        self.pid: int = self._nft.pid

    def fileno(self) -> int:
        """Return the file descriptor of nft's output.

        After ``take`` nft prints nothing until it ends.
        """
        number: int = self._nft.stdout.fileno()
        return number

    def take(self, lines: Sequence[str]) -> None:
        """Send ``lines`` to nft, and wait until the table and its chain exist.

        Raises:
          Refused: nft reports an error; the text is its first line.
        """
        with contextlib.suppress(BrokenPipeError):  # nft has ended; its output is read below
            self._nft.stdin.write("".join(f"{line}\n" for line in lines).encode())
            self._nft.stdin.write(f"list chain inet {self._table} incoming\n".encode())
            self._nft.stdin.flush()
        until = time.monotonic() + NFT_S
        line = self._line(until)
        while line.startswith(_CHATTER):
            line = self._line(until)
        if not line.startswith(f"table inet {self._table} "):
            raise Refused(line)
        while line != "}":
            line = self._line(until)

    def _line(self, until: float) -> str:
        while b"\n" not in self._unread:
            if not readable(self, until - time.monotonic()):
                raise Refused(f"nft did not answer within {NFT_S:.0f} s")
            data = os.read(self.fileno(), 65536)
            if not data:
                raise Refused(self._unread.decode(errors="replace") or "it ended without output")
            self._unread += data
        line, self._unread = self._unread.split(b"\n", 1)
        return line.decode(errors="replace").rstrip()

    def close(self) -> None:
        """End nft, which removes the table."""
        with contextlib.suppress(BrokenPipeError):
            self._nft.stdin.close()
        try:
            self._nft.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(PermissionError):  # a process of sudo, which ends with its stdin
                self._nft.kill()
        self._nft.stdout.close()


@contextlib.contextmanager
def standing(run: str, ports: Sequence[int], names: Optional[Sequence[str]]) -> Iterator[Optional[Guard]]:
    """Guard the ports of a run until the end of the block. If ``names`` is None, set no guard.

    Args:
      names: the names of the cluster's hosts; only these may reach the ports.

    Raises:
      Unguarded: this host cannot have a guard.
    """
    if names is None:
        yield None
        return
    table = f"launch_{run.replace('-', '_')}_{os.getpid()}"
    four, six = peers(names)
    guard = raise_guard(table, rules(table, ports, four, six))
    try:
        yield guard
    finally:
        guard.close()


def ports(request: RunRequest) -> List[int]:
    """Return the ports of this host's tasks, and on the chief's host also the port that other agents connect to.

    MASTER_PORT is included, because a program of rank 0 may listen there without any authentication.
    """
    own, leads = [task.port for task in request.tasks], request.lead.host == request.host
    named = [task.env.get("MASTER_PORT", "") for task in request.tasks if task.chief]
    own += [int(port) for port in named if port.isdecimal() and 0 < int(port) < 1 << 16]
    return own + ([request.lead.endpoint[1]] if leads and request.lead.address else [])


def peers(names: Sequence[str]) -> Tuple[Set[str], Set[str]]:
    """Return the IPv4 and the IPv6 addresses of the cluster's names.

    Raises:
      Unguarded: this host cannot resolve a name; the text has the first one.
    """
    every: Set[str] = set()
    for name, meaning in resolve(names, LOOKUP_S).items():
        if isinstance(meaning, str):
            reason = f"guard: the address of {name} is not known on this host ({meaning})"
            raise Unguarded(reason, f"see `getent hosts {name}`")
        every.update(address.split("%")[0] for address in meaning)  # without the zone of a link-local address
    six = {address for address in every if ":" in address}
    return every - six, six


def rules(table: str, ports: Sequence[int], four: Set[str], six: Set[str]) -> List[str]:
    """Return nft's lines that drop traffic to ``ports`` from other hosts and other users.

    Other hosts are all except ``four`` (IPv4) and ``six`` (IPv6). Traffic from this host to itself goes over the
    loopback, where the lines drop other users' packets. The kernel knows the sender's user only for outgoing traffic.
    """
    others = ("ip saddr != @four", "ip6 saddr != @six")
    guarded = f"tcp dport {{ {', '.join(map(str, ports))} }}"
    users = ", ".join(map(str, sorted({0, os.getuid()})))
    return [
        f"add table inet {table} {{ flags owner; }}",
        f"add set inet {table} four {{ type ipv4_addr; }}",
        f"add set inet {table} six {{ type ipv6_addr; }}",
        *_elements(table, "four", sorted(four)),
        *_elements(table, "six", sorted(six)),
        f"add chain inet {table} incoming {{ type filter hook input priority 0; policy accept; }}",
        f"add chain inet {table} outgoing {{ type filter hook output priority 0; policy accept; }}",
        *(f'add rule inet {table} incoming iifname != "lo" {guarded} {each} drop' for each in others if ports),
        *([f'add rule inet {table} outgoing oifname "lo" {guarded} meta skuid != {{ {users} }} drop'] if ports else []),
    ]


def _elements(table: str, name: str, addresses: Sequence[str]) -> Iterator[str]:
    for first in range(0, len(addresses), AT_ONCE):
        yield f"add element inet {table} {name} {{ {', '.join(addresses[first : first + AT_ONCE])} }}"


def raise_guard(table: str, lines: Sequence[str]) -> Guard:
    """Start nft, directly or through sudo, and return the guard once ``lines`` are in force.

    Raises:
      Unguarded: nft fails both directly and through sudo, or is missing; the text has the reasons.
    """
    refusals = []
    for argv in ways():
        guard = Guard(argv, table)
        try:
            guard.take(lines)
            return guard
        except Refused as error:
            guard.close()
            refusals.append(f"`{' '.join(argv[:-1])}` answers: {error}")
    raise Unguarded(f"guard: nftables is not possible here ({'; '.join(refusals) or 'no nft here'})", _ADVICE)


def refusal() -> Optional[Tuple[str, str]]:
    """Return the reason why this host cannot guard a run, and the remedy; None where it can.

    The check leaves no guard behind.
    """
    table = f"launch_check_{os.getpid()}"
    try:
        raise_guard(table, rules(table, [], set(), set())).close()
    except Unguarded as error:
        return error.reason, error.mend
    return None


def ways() -> List[List[str]]:
    """Return the commands that can run nft here, the simplest first."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])  # rarely in a user's PATH
    nft, sudo = shutil.which("nft", path=path), shutil.which("sudo", path=path)
    if nft is None:
        return []
    return [[nft, "-i"], *([[sudo, "-n", nft, "-i"]] if sudo else [])]
