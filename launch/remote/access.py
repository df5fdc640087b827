"""Access to all hosts: the SSH configuration, the known hosts, the keys and the gateways, each read once."""

import os
import socket
import threading
from contextlib import suppress
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import fabric
import paramiko
from fabric.connection import derive_shorthand

from cluster.spec.model import Ssh
from launch.errors import HostProblem
from launch.hosts.retry import Backoff, persist
from launch.openssh.ssh_program import SshProgram, gateways_before
from launch.remote.connection_failures import (
    RevokedHostKey,
    UnknownHostKey,
    explain,
    is_dropped,
    is_full,
    unanswered,
)
from launch.remote.gateways import Gateways, Route
from launch.remote.known_hosts import KnownHosts, Trust
from launch.remote.login import Login
from launch.remote.private_keys import LoginKeys, ask_on_terminal
from launch.remote.proxy_command import Dialled, ProxyCommand
from launch.remote.ssh_options import OneHost, SshOptions

KEEPALIVE_S = 5
MUTE_S = 30.0  # a host that confirms no byte for this time, not even a keepalive, has no connection any more
OPTIONS_S = 10.0  # for the answer of `ssh -G`
TRIES = 3  # times ssh.connect_timeout_s: the time for retries of a dropped login; and of connections to a full gateway
_MACHINE = "/etc/ssh/ssh_known_hosts"
_RSA = ("rsa-sha2-512", "rsa-sha2-256", "ssh-rsa")
_KINDS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", *_RSA)


class Access:
    """A source of connections to hosts, by the settings of the hosts file and the SSH configuration."""

    def __init__(self, settings: Ssh, ask: Callable[[str], str] = ask_on_terminal):
        self._settings, self._ask = settings, ask
        self._options = SshOptions(settings.config, OPTIONS_S)
        self._known: Dict[Tuple[str, ...], KnownHosts] = {}
        self._keys: Optional[LoginKeys] = None
        self._offers: Dict[str, List[paramiko.PKey]] = {}
        self._gateways = Gateways(
            self._open, lambda name, last: self._lookup(name, last).get("proxyjump") or "", hang_up
        )
        self._ended = threading.Event()

    def look_up(self, name: str) -> None:
        """Read the SSH options of a host; if they are wrong, only ``prepare`` raises the error."""
        with suppress(HostProblem):
            self._lookup(name, True)

    def prepare(self, name: str) -> None:
        """Load the keys for a host and its gateways, and ask for the passphrases that they need.

        Raises:
          HostProblem: a key cannot be used.
        """
        route = self._route(name)
        for place, hop in enumerate((*route, name)):
            if hop not in self._offers:
                self._keys = self._keys or LoginKeys(self._ask)
                self._offers[hop] = self._offer(self._keys, hop, self._lookup(hop, place == len(route)))

    def open(self, name: str) -> fabric.Connection:
        """Return a connection to a host; retry if sshd drops the login.

        Raises:
          HostProblem: the host, or a gateway before it, cannot be reached.
        """
        route = self._route(name)
        gateway = self._gateways.last(route)
        for _ in range(TRIES):
            try:
                return self._open(name, gateway, True)
            except HostProblem as problem:
                if gateway is None or not is_full(problem.__cause__):
                    raise
                gateway = self._gateways.further(route, gateway)
        return self._open(name, gateway, True)

    def problem(self, name: str, connection: fabric.Connection, error: Exception) -> HostProblem:
        """Return the problem of a host whose connection has failed with ``error``."""
        host = derive_shorthand(name)["host"]
        known = self._operators_files(connection.ssh_config)[0]
        jump = ",".join(gateways_before(name, self._settings.gateway))
        settings = replace(self._settings, user=connection.user, port=connection.port, gateway=jump, known_hosts=known)
        place = connection.host, connection.port
        return explain(name, error, place, SshProgram(host, settings), _entry(connection))

    def close(self) -> None:
        """End the gateways' connections, and every attempt in progress."""
        self._ended.set()
        self._gateways.close()
        if self._keys is not None:
            self._keys.close()

    def _route(self, name: str) -> Route:
        return self._gateways.route(name, self._settings.gateway)

    def _open(self, name: str, gateway: Optional[fabric.Connection], is_last: bool = False) -> fabric.Connection:
        options = self._lookup(name, is_last)
        config = fabric.Config(ssh_config=OneHost(options))  # not shared, because a connection modifies its own config
        user, port = self._login(name, is_last)
        host = derive_shorthand(name)["host"]
        connection = Dialled(host, user, port, config, connect_kwargs=self._arguments())
        connection.gateway = gateway or options.get("proxycommand")
        connection.connect_timeout = self._settings.connect_timeout_s  # here, as Fabric cuts it to whole seconds
        connection.forward_agent = False  # overrides the configuration: no host may use the operator's keys
        connection.connect_kwargs["auth_strategy"] = Login(connection.user, self._offers[name])
        self._be_strict(connection)
        try:
            persist(lambda: _log_in(connection), is_dropped, self._backoff(), self._ended.wait)
        except Exception as error:
            raise self.problem(name, connection, error) from error
        connection.transport.set_keepalive(KEEPALIVE_S)
        return connection

    def _backoff(self) -> Backoff:
        return Backoff(total_s=TRIES * self._settings.connect_timeout_s)

    def _arguments(self) -> Dict[str, Any]:
        bound = self._settings.connect_timeout_s
        return {
            "banner_timeout": bound, "auth_timeout": bound, "channel_timeout": bound,
            "transport_factory": self._transport,
        }  # fmt: skip

    def _transport(self, *arguments: Any, **options: Any) -> Any:
        """Make the transport of a connection that ends ``MUTE_S`` after its host has become mute.

        ``connect_timeout_s`` ends the key exchange; Paramiko's own limit of 15 s would look like a dropped login.
        """
        transport = paramiko.Transport(*arguments, **options)
        transport.handshake_timeout = 2 * self._settings.connect_timeout_s
        if isinstance(transport.sock, socket.socket) and hasattr(socket, "TCP_USER_TIMEOUT"):  # on Linux
            transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * MUTE_S))
        return transport

    def _be_strict(self, connection: fabric.Connection) -> None:
        """Accept only a known host key, and request only the kinds of keys that are known."""
        entry = _entry(connection)
        name = entry[1:].partition("]:")[0] if entry.startswith("[") else entry
        trust = self._files(connection.ssh_config).about(entry, name)
        connection.client.set_missing_host_key_policy(Judge(trust))  # it has no keys, so it asks about each
        kinds = {key.get_name() for key in trust.keys}
        wanted = {each for kind in kinds for each in (_RSA if kind == "ssh-rsa" else (kind,))}
        if wanted:
            connection.connect_kwargs["disabled_algorithms"] = {"keys": [k for k in _KINDS if k not in wanted]}

    def _files(self, options: Mapping[str, Any]) -> KnownHosts:
        """Return the known hosts for a connection with these options: the operator's, and the machine's."""
        files = (*self._operators_files(options), *options.get("globalknownhostsfile", _MACHINE).split())
        if files not in self._known:
            self._known[files] = KnownHosts(files)
        return self._known[files]

    def _operators_files(self, options: Mapping[str, Any]) -> List[str]:
        """Return the file of ``ssh.known_hosts``, or those of UserKnownHostsFile; /dev/null keeps no keys."""
        named = [each for each in options.get("userknownhostsfile", "").split() if not each.startswith("/dev/")]
        return named if named and self._settings.known_hosts == Ssh.known_hosts else [self._settings.known_hosts]

    def _lookup(self, name: str, is_last: bool) -> Mapping[str, Any]:
        """Return the options of the SSH configuration for a host, or for a gateway before the last host."""
        return self._options.about(derive_shorthand(name)["host"], *self._login(name, is_last))

    def _login(self, name: str, is_last: bool) -> Tuple[Optional[str], Optional[int]]:
        """Return the user and the port that replace those of the SSH configuration; None for one that does not."""
        if is_last:
            return self._settings.user, self._settings.port
        written = derive_shorthand(name)
        return written["user"], written["port"]

    def _offer(self, keys: LoginKeys, name: str, options: Mapping[str, Any]) -> List[paramiko.PKey]:
        """Return the keys for a host."""
        key = self._settings.key
        if key and not os.path.isfile(os.path.expanduser(key)):
            raise HostProblem.here(f"ssh.key: expected a private key, found no file {key}")
        files = [*([key] if key else []), *options.get("identityfile", [])]
        return keys.offer(files, only=options.get("identitiesonly") == "yes", agent=options.get("identityagent"))


def hang_up(connection: fabric.Connection) -> None:
    """End a connection, and the ProxyCommand that carries it."""
    transport = connection.transport
    connection.close()
    _release(transport)


def _release(transport: Optional[paramiko.Transport]) -> None:
    if transport is not None and isinstance(transport.sock, ProxyCommand):
        transport.sock.release(transport)


class Judge(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
    """The policy for keys that Paramiko itself does not find: only hosts with a known key are accepted."""

    def __init__(self, trust: Trust):
        self._trust = trust

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Accept or refuse ``key``, the key of a host, by the known hosts.

        Raises:
          RevokedHostKey: the key is revoked.
          BadHostKeyException: the host is known by another key.
          UnknownHostKey: no key of the host is known.
        """
        if key in self._trust.revoked:
            raise RevokedHostKey(f"the key of {hostname} is revoked")
        if key in self._trust.keys:
            return
        if self._trust.keys:
            raise paramiko.BadHostKeyException(hostname, key, self._trust.keys[0])
        raise UnknownHostKey(f"no key is known for {hostname}", bool(self._trust.authorities))


def _dialled(connection: fabric.Connection) -> str:
    """Return the name under which Paramiko looks up the key of a host."""
    return str(connection.host) if connection.port == 22 else f"[{connection.host}]:{connection.port}"


def _entry(connection: fabric.Connection) -> str:
    """Return the name of a host among the known hosts."""
    return str(connection.ssh_config.get("hostkeyalias", _dialled(connection)))


def _log_in(connection: fabric.Connection) -> None:
    try:
        connection.open()
    except BaseException as error:
        transport = connection.client.get_transport()
        silence = unanswered(error, has_banner=transport is None or bool(transport.remote_version))
        connection.client.close()
        _release(transport)
        if silence is not None:
            raise silence from error
        raise
