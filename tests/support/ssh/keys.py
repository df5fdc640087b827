"""Pairs of keys as ssh-keygen writes them, on machines that have none."""

from pathlib import Path
from typing import Any, Callable, Dict

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

_KINDS: Dict[str, Callable[[], Any]] = {
    "ed25519": ed25519.Ed25519PrivateKey.generate,
    "ecdsa": lambda: ec.generate_private_key(ec.SECP256R1()),
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
}


def new_key(path: Path, passphrase: str = "", kind: str = "ed25519", pem: bool = False) -> Path:
    """Write ``path`` and ``path``.pub, in place of older ones; with a passphrase, the first is locked."""
    key = _KINDS[kind]()
    form = serialization.PrivateFormat.TraditionalOpenSSL if pem else serialization.PrivateFormat.OpenSSH
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, _lock(passphrase)))
    path.chmod(0o600)
    line = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    Path(f"{path}.pub").write_bytes(line + b" tests\n")
    return path


def _lock(passphrase: str) -> Any:
    if not passphrase:
        return serialization.NoEncryption()
    return serialization.BestAvailableEncryption(passphrase.encode())
