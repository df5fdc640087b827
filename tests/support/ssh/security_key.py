"""An ssh-agent that holds one key of a security key (FIDO, ``sk-ssh-ed25519``), made of software."""

import base64
import hashlib
import socket
import struct
import threading
from pathlib import Path
from typing import Iterator, List

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

KIND, APPLICATION = b"sk-ssh-ed25519@openssh.com", b"ssh:"
_LIST, _LISTED, _SIGN, _SIGNED, _FAILURE = 11, 12, 13, 14, 5
_TOUCHED = 1


class SecurityKeyAgent:
    """The agent, until the end of the block: ``path`` is for SSH_AUTH_SOCK, ``line`` for authorized_keys."""

    def __init__(self, path: Path):
        self.path, self.signatures = path, 0
        self._key = ed25519.Ed25519PrivateKey.generate()
        raw = serialization.Encoding.Raw, serialization.PublicFormat.Raw
        self._blob = _strings(KIND, self._key.public_key().public_bytes(*raw), APPLICATION)
        self.line = f"{KIND.decode()} {base64.b64encode(self._blob).decode()} software\n"
        self._listening = socket.socket(socket.AF_UNIX)
        self._callers: List[socket.socket] = []

    def __enter__(self) -> "SecurityKeyAgent":
        self._listening.bind(str(self.path))
        self._listening.listen(16)
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        for each in (self._listening, *self._callers):
            each.close()

    def _serve(self) -> None:
        while True:
            try:
                caller = self._listening.accept()[0]
            except OSError:  # closed
                return
            self._callers.append(caller)
            threading.Thread(target=self._answer, args=(caller,), daemon=True).start()

    def _answer(self, caller: socket.socket) -> None:
        with caller.makefile("rwb") as stream:
            for size in iter(lambda: stream.read(4), b""):
                answer = self._answered(stream.read(struct.unpack(">I", size)[0]))
                stream.write(struct.pack(">I", len(answer)) + answer)
                stream.flush()

    def _answered(self, request: bytes) -> bytes:
        if request[0] == _LIST:
            return bytes([_LISTED]) + struct.pack(">I", 1) + _strings(self._blob, b"software")
        if request[0] != _SIGN:
            return bytes([_FAILURE])  # as an agent that binds keys to no session
        _, message = list(_read(request[1:]))[:2]
        return bytes([_SIGNED]) + _strings(self._signed(message))

    def _signed(self, message: bytes) -> bytes:
        self.signatures += 1
        proof = struct.pack(">BI", _TOUCHED, self.signatures)
        digests = [hashlib.sha256(each).digest() for each in (APPLICATION, message)]
        return _strings(KIND, self._key.sign(digests[0] + proof + digests[1])) + proof


def _strings(*values: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(value)) + value for value in values)


def _read(data: bytes) -> Iterator[bytes]:
    while len(data) >= 4:
        size = 4 + struct.unpack(">I", data[:4])[0]
        yield data[4:size]
        data = data[size:]
