"""A host reached over SSH. The only module that knows Fabric.

Fabric brings ssh_config, users, keys and gateways; three of its habits are changed here.
It accepts every host key, even a changed one: we load the known hosts and reject what is
not in them. It has no bound on several waits: we set connect, banner and auth timeouts
and a keepalive. It runs commands and leaves them running when the caller goes: we only
ever start our agent, which looks after the processes itself.
"""

import os
import shlex
import socket
import time
import warnings
from typing import Any, Dict, Optional, Sequence, Tuple

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what Paramiko's own imports say of Python 3.7 is no news for an operator
    import fabric
    import paramiko

from cluster.spec.model import Ssh
from launch.channel import CHUNK, Channel, Host, Silence
from launch.errors import HostProblem

KEEPALIVE_S = 5
OPEN_S = 20.0


class SshChannel(Channel):
    """One SSH session that runs one program."""

    def __init__(self, session: Any):
        super().__init__()
        self._session = session
        self._errors = b""

    def send(self, data: bytes) -> None:
        self._session.settimeout(OPEN_S)
        self._session.sendall(data)

    def receive(self, timeout_s: float) -> bytes:
        self._drain_errors()
        self._session.settimeout(timeout_s)
        try:
            data: bytes = self._session.recv(CHUNK)
        except socket.timeout:
            raise Silence from None
        return data

    def end(self) -> None:
        self._session.shutdown_write()

    def _drain_errors(self) -> None:
        while self._session.recv_stderr_ready():
            self._errors = (self._errors + self._session.recv_stderr(CHUNK))[-CHUNK:]

    def complaint(self) -> str:
        until = time.monotonic() + OPEN_S
        while not self._session.exit_status_ready() and time.monotonic() < until:
            self._session.status_event.wait(0.1)
        self._drain_errors()
        return self._errors.decode(errors="replace").strip()

    def close(self) -> None:
        self._session.close()


class SshHost(Host):
    """A host reached by its name in the hosts file, or what ssh_config makes of it."""

    def __init__(self, name: str, python: str, settings: Ssh):
        super().__init__(name, python)
        self._settings = settings
        self._connection: Optional[Any] = None

    def connect(self) -> None:
        self._connection = self._configured()
        try:
            if self._settings.gateway or self._connection.gateway:
                self._open_gateway(self._connection.gateway)
            self._connection.open()
        except Exception as error:
            raise HostProblem(self.name, explain(error, self._place(), self._settings)) from error
        self._connection.transport.set_keepalive(KEEPALIVE_S)

    def _configured(self) -> Any:
        settings = self._settings
        config = fabric.Config(runtime_ssh_path=_existing(settings.config))
        connection = fabric.Connection(
            self.name,
            user=settings.user,
            port=settings.port if settings.port != 22 else None,  # None: as ssh_config has it
            gateway=fabric.Connection(settings.gateway, config=config) if settings.gateway else None,
            config=config,
            connect_timeout=settings.connect_timeout_s,
            connect_kwargs=self._arguments(),
        )
        self._be_strict(connection)
        return connection

    def _arguments(self) -> Dict[str, Any]:
        bound = self._settings.connect_timeout_s
        arguments: Dict[str, Any] = {"banner_timeout": bound, "auth_timeout": bound, "channel_timeout": bound}
        if self._settings.key:
            arguments["key_filename"] = os.path.expanduser(self._settings.key)
        return arguments

    def _be_strict(self, connection: Any) -> None:
        known = _existing(self._settings.known_hosts)
        if known:
            connection.client.load_system_host_keys(known)
        connection.client.set_missing_host_key_policy(paramiko.RejectPolicy())

    def _open_gateway(self, gateway: Any) -> None:
        if not isinstance(gateway, fabric.Connection):
            return  # a ProxyCommand: it is a program of its own
        self._be_strict(gateway)
        gateway.connect_timeout = self._settings.connect_timeout_s
        gateway.connect_kwargs.update({**self._arguments(), **gateway.connect_kwargs})
        gateway.open()

    def _place(self) -> Tuple[str, int]:
        connection = self._connection
        return (connection.host, connection.port) if connection is not None else (self.name, self._settings.port)

    def open(self, argv: Sequence[str]) -> Channel:
        if self._connection is None:
            self.connect()
        try:
            session = self._connection.create_session()  # type: ignore[union-attr]
            session.settimeout(OPEN_S)
            session.exec_command(command_line(argv))
        except Exception as error:
            raise HostProblem(self.name, explain(error, self._place(), self._settings)) from error
        return SshChannel(session)

    def dial(self, port: int) -> Any:
        if self._connection is None:
            self.connect()
        near, far = ("127.0.0.1", 0), ("127.0.0.1", port)
        try:
            return self._connection.transport.open_channel("direct-tcpip", far, near, timeout=OPEN_S)  # type: ignore[union-attr]
        except paramiko.ChannelException as error:
            refused = f"sshd does not forward to port {port} there ({error.text}); it needs AllowTcpForwarding yes"
            raise HostProblem(self.name, refused) from error
        except Exception as error:
            raise HostProblem(self.name, explain(error, self._place(), self._settings)) from error

    def close(self) -> None:
        super().close()
        if self._connection is not None:
            gateway = self._connection.gateway
            self._connection.close()
            if isinstance(gateway, fabric.Connection):
                gateway.close()


def command_line(argv: Sequence[str]) -> str:
    """argv as one line for the login shell over there; a leading ``~/`` still means home."""
    words = [shlex.quote(word) for word in argv]
    if argv[0].startswith("~/"):
        words[0] = "~/" + shlex.quote(argv[0][2:])
    return "exec " + " ".join(words)


def _existing(path: Optional[str]) -> Optional[str]:
    full = os.path.expanduser(path) if path else None
    return full if full and os.path.isfile(full) else None


def explain(error: Exception, place: Tuple[str, int], settings: Ssh) -> str:
    """Why a host could not be reached, and what to do next."""
    host, port = place
    scan = f"ssh-keyscan -p {port} {host}"
    known = settings.known_hosts
    entry = host if port == 22 else f"[{host}]:{port}"
    if isinstance(error, paramiko.BadHostKeyException):
        return (
            f"its host key is not the one in {known}: the machine was set up anew, or somebody is in between; "
            f"show the new key with `{scan} | ssh-keygen -lf -`, and if it is right, accept it with "
            f"`ssh-keygen -R '{entry}' -f {known} && {scan} >> {known}`"
        )
    if isinstance(error, paramiko.PasswordRequiredException):
        return "the key is locked by a passphrase; unlock it with `ssh-add`"
    if isinstance(error, paramiko.AuthenticationException):
        return f"login refused ({error}); try `ssh -p {port} {host}`, and see the keys ssh.user and ssh.key"
    if isinstance(error, paramiko.SSHException) and "not found in known_hosts" in str(error):
        return (
            f"its host key is not in {known}; show it with `{scan} | ssh-keygen -lf -`, "
            f"and if it is right, accept it with `{scan} >> {known}`"
        )
    if isinstance(error, socket.gaierror):
        return f"the name {host} is not known here ({error.strerror}); see `getent hosts {host}`"
    if isinstance(error, (socket.timeout, TimeoutError)) or "Timeout opening channel" in str(error):
        return f"no answer from {host} port {port} within {settings.connect_timeout_s:g} s; is the host up?"
    if isinstance(error, (OSError, paramiko.ssh_exception.NoValidConnectionsError)):
        return f"no SSH at {host} port {port} ({error.strerror or error}); is the host up, and sshd on it?"
    return f"SSH to {host} port {port} failed: {type(error).__name__}: {error}"
