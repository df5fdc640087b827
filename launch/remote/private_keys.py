"""The operator's private keys, which all connections share.

The launcher reads each key once, and asks for its passphrase once. A passphrase exists only in the memory of this
process. If ssh-agent holds a key, ssh-agent signs, and no passphrase is needed.
"""

import base64
import getpass
import io
import os
import re
import signal
import socket
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence

import paramiko
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from launch.errors import HostProblem

USUAL = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
TRIES = 3
ANSWER_S = 60.0  # for an agent, which may ask a person
_MAGIC = b"openssh-key-v1\0"
_PKCS8 = re.compile(rb"-----BEGIN (ENCRYPTED )?PRIVATE KEY-----")


Held = Dict[bytes, paramiko.PKey]


class Locked(Exception):
    """A key file that needs a passphrase."""


class SharedAgent(paramiko.Agent):  # type: ignore[misc]
    """An ssh-agent of the operator, which only one thread at a time asks."""

    def __init__(self, path: str) -> None:
        self._one = threading.Lock()
        paramiko.agent.AgentSSH.__init__(self)
        conversation = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            conversation.settimeout(ANSWER_S)
            conversation.connect(path)
            self._connect(conversation)
        except (OSError, paramiko.SSHException):
            conversation.close()  # as OpenSSH does, the login goes on without it

    def _send_message(self, message: Any) -> Any:
        with self._one:
            return super()._send_message(message)


class LoginKeys:
    """The keys to log in with.

    Args:
      ask: returns the passphrase of a key file; "" where no person can be asked.
    """

    def __init__(self, ask: Callable[[str], str]):
        self._ask = ask
        self._agents: Dict[str, SharedAgent] = {}  # by path
        self._loaded: Dict[str, Optional[paramiko.PKey]] = {}

    def offer(
        self,
        files: Sequence[str],
        only: bool = False,
        agent: Optional[str] = None,
    ) -> List[paramiko.PKey]:
        """Return the keys to offer to a host, in order.

        Keys of security keys are left out: Paramiko cannot log in with them.

        Args:
          files: the key files named for the host; missing files are skipped.
          only: whether to offer only these keys (IdentitiesOnly).
          agent: the value of IdentityAgent; None if the option is not set.

        Raises:
          HostProblem: a named key cannot be used.
        """
        held = self._held_by(agent)
        named = self._all(files, held)
        others = [] if only else list(held.values())
        found = {key.asbytes(): key for key in [*named, *others]}
        return list(found.values()) or ([] if files else self._usual(held))

    def _held_by(self, agent: Optional[str]) -> Held:
        """Return the keys of an agent, by their public halves."""
        variable = "SSH_AUTH_SOCK" if agent is None else agent.lstrip("$")
        path = os.environ.get(variable, "") if agent is None or agent[:1] not in ("/", "~") else agent
        if not path:
            return {}
        if path not in self._agents:
            self._agents[path] = SharedAgent(os.path.expanduser(path))
        return {key.asbytes(): key for key in self._agents[path].get_keys() if not is_of_hardware(key.get_name())}

    def _usual(self, held: Held) -> List[paramiko.PKey]:
        """Return the keys under their usual names.

        The method asks for a passphrase only where no key can be loaded without one.
        """
        found, locked = [], []
        for path in (os.path.expanduser(usual) for usual in USUAL):
            try:
                found += [load(path)] if os.path.isfile(path) else []
            except Locked:
                locked.append(path)
        return found or self._all(locked[:1], held)

    def _all(self, files: Sequence[str], held: Held) -> List[paramiko.PKey]:
        keys = (self._named(os.path.expanduser(path), held) for path in files)
        return [key for key in keys if key is not None]

    def _named(self, path: str, held: Held) -> Optional[paramiko.PKey]:
        if path not in self._loaded:
            public = public_part(path) if os.path.isfile(path) else None
            if not os.path.isfile(path) or is_of_hardware(name_of(public)):
                self._loaded[path] = None
            elif (public or b"") in held:
                self._loaded[path] = held[public or b""]
            else:
                self._loaded[path] = self._read(path)
        return self._loaded[path]

    def _read(self, path: str) -> paramiko.PKey:
        try:
            return load(path)
        except Locked:
            return self._unlock(path)

    def _unlock(self, path: str) -> paramiko.PKey:
        for _ in range(TRIES):
            passphrase = self._ask(path)
            if not passphrase:
                raise _problem(
                    f"the key {path} is locked by a passphrase, and there is no terminal to ask for it", path
                )
            try:
                return load(path, passphrase)
            except Locked:
                continue
        raise _problem(f"the key {path} was not unlocked: {TRIES} wrong passphrases", path)

    def close(self) -> None:
        """Close the connections to agents."""
        for agent in self._agents.values():
            agent.close()


def is_of_hardware(name: str) -> bool:
    """Return whether ``name`` is the key type of a security key, with which Paramiko cannot sign."""
    return name.startswith("sk-")


def name_of(public: Optional[bytes]) -> str:
    """Return the type of a key, such as ``ssh-ed25519``, from its public half; "" for None."""
    return str(paramiko.Message(public).get_text()) if public else ""


def _problem(what: str, path: str) -> HostProblem:
    return HostProblem.here(what, advice=f"unlock it with `ssh-add {path}`")


def load(path: str, passphrase: Optional[str] = None) -> paramiko.PKey:
    """Return the key in a file, with the certificate next to it, if any.

    Raises:
      Locked: the key needs a passphrase, or ``passphrase`` is wrong.
      HostProblem: the file has no private key that can be used.
    """
    secret = passphrase.encode() if passphrase else None
    try:
        return (_from_pkcs8 if _PKCS8.match(Path(path).read_bytes()) else paramiko.PKey.from_path)(path, secret)
    except TypeError as error:  # from cryptography, if a passphrase is missing
        raise Locked from error
    except (OSError, ValueError, paramiko.SSHException) as error:
        if passphrase:
            raise Locked from error
        text = f"expected a private key in {path}, found none that can be used ({error})"
        raise HostProblem.here(text, advice=f"try `ssh-keygen -lf {path}`") from error


def _from_pkcs8(path: str, passphrase: Optional[bytes]) -> paramiko.PKey:
    """Return a key in the format of ``openssl genpkey``, which Paramiko does not read: rewritten in OpenSSH's."""
    found = load_pem_private_key(Path(path).read_bytes(), passphrase)
    kind = found.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).split()[0].decode()
    of_kind = {"ssh-rsa": paramiko.RSAKey, "ssh-ed25519": paramiko.Ed25519Key}.get(kind, paramiko.ECDSAKey)
    text = found.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    return of_kind.from_private_key(io.StringIO(text))


def public_part(path: str) -> Optional[bytes]:
    """Return the public half of the key in a file, which needs no passphrase; None if it cannot be read."""
    beside = Path(path + ".pub")
    try:
        text = (beside if beside.is_file() else Path(path)).read_text()
        if "PRIVATE KEY" not in text:
            return base64.b64decode(text.split()[1])
        return _public_part(base64.b64decode("".join(text.split("-----")[2].split())))
    except (OSError, ValueError, IndexError):
        return None


def _public_part(data: bytes) -> Optional[bytes]:
    """Return the public key in OpenSSH's own format; None for another format.

    The format consists of the cipher, the key derivation and its options, the number of keys, and the public key.
    """
    if not data.startswith(_MAGIC):
        return None
    rest = paramiko.Message(data[len(_MAGIC) :])
    for _ in range(3):
        rest.get_binary()
    rest.get_int()
    public: bytes = rest.get_binary()
    return public


def ask_on_terminal(path: str) -> str:
    """Ask for a passphrase without showing the typed text; return "" if there is no terminal.

    Ctrl-C ends the program as if the launcher handled no signals.
    """
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return ""
    heeding = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return getpass.getpass(f"passphrase of {path}: ")
    finally:
        signal.signal(signal.SIGINT, heeding)
