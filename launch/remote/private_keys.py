"""The operator's private keys, which all connections share.

The launcher reads each key once, and asks for its passphrase once. A passphrase exists only in the memory of this
process. If ssh-agent holds a key, ssh-agent signs, and no passphrase is needed.
"""

import base64
import getpass
import os
import signal
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence

import paramiko

from launch.errors import HostProblem

USUAL = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
TRIES = 3
_MAGIC = b"openssh-key-v1\0"


class Locked(Exception):
    """A key file that needs a passphrase."""


class SharedAgent(paramiko.Agent):  # type: ignore[misc]
    """The operator's ssh-agent, asked by one thread at a time."""

    def __init__(self) -> None:
        self._one = threading.Lock()
        super().__init__()

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
        self._agent = SharedAgent()
        self._held: Dict[bytes, paramiko.PKey] = {key.asbytes(): key for key in self._agent.get_keys()}
        self._loaded: Dict[str, Optional[paramiko.PKey]] = {}

    def offer(self, files: Sequence[str], only: bool = False, unlock: bool = True) -> List[paramiko.PKey]:
        """Return the keys to offer to a host, in order.

        Args:
          files: the key files named for the host; missing files are skipped.
          only: offer only these keys (IdentitiesOnly).
          unlock: ask for the passphrase of a locked key; otherwise leave that key out.

        Raises:
          HostProblem: a named key cannot be used.
        """
        named = self._all(files, unlock)
        others = [] if only else list(self._held.values())
        found = {key.asbytes(): key for key in [*named, *others]}
        return list(found.values()) or ([] if only or files else self._usual(unlock))

    def _usual(self, unlock: bool) -> List[paramiko.PKey]:
        """Return the keys under their usual names.

        The method asks for a passphrase only where no key can be loaded without one.
        """
        found, locked = [], []
        for path in (os.path.expanduser(usual) for usual in USUAL):
            try:
                found += [load(path)] if os.path.isfile(path) else []
            except Locked:
                locked.append(path)
        return found or self._all(locked[:1], unlock)

    def _all(self, files: Sequence[str], unlock: bool) -> List[paramiko.PKey]:
        keys = (self._named(path, unlock) for path in files)
        return [key for key in keys if key is not None]

    def _named(self, path: str, unlock: bool) -> Optional[paramiko.PKey]:
        path = os.path.expanduser(path)
        if not unlock and path not in self._loaded and self._is_locked(path):
            return None
        if path not in self._loaded:
            self._loaded[path] = self._read(path) if os.path.isfile(path) else None
        return self._loaded[path]

    def _is_locked(self, path: str) -> bool:
        """Return whether the key in a file needs a passphrase from a person."""
        try:
            return os.path.isfile(path) and (public_part(path) or b"") not in self._held and not load(path)
        except Locked:
            return True

    def _read(self, path: str) -> paramiko.PKey:
        held = self._held.get(public_part(path) or b"")
        if held is not None:
            return held
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
        """Close the connection to ssh-agent."""
        self._agent.close()


def _problem(what: str, path: str) -> HostProblem:
    return HostProblem.here(what, advice=f"unlock it with `ssh-add {path}`")


def load(path: str, passphrase: Optional[str] = None) -> paramiko.PKey:
    """Return the key in a file, with the certificate next to it, if any.

    Raises:
      Locked: the key needs a passphrase, or another one.
      HostProblem: the file has no private key that can be used.
    """
    try:
        return paramiko.PKey.from_path(path, passphrase.encode() if passphrase else None)
    except TypeError as error:  # from cryptography, if a passphrase is missing
        raise Locked from error
    except (OSError, ValueError, paramiko.SSHException) as error:
        if passphrase:
            raise Locked from error
        text = f"expected a private key in {path}, found none that can be used ({error})"
        raise HostProblem.here(text, advice=f"try `ssh-keygen -lf {path}`") from error


def public_part(path: str) -> Optional[bytes]:
    """Return the public half of a key without its passphrase; None where that fails."""
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
    """Ask for a passphrase without showing it; return "" without a terminal.

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
