"""Known hosts: the keys of hosts, the authorities that sign host keys, certificates, and revoked keys.

The files have OpenSSH's format: names are plain, hashed or patterns, and a line may begin with ``@cert-authority`` or
``@revoked``. All lines of all files count. With a certificate, a host proves that an authority has signed its key.
"""

import base64
import contextlib
import os
import re
import time
from typing import Any, Collection, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import paramiko
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    SSHCertificate,
    SSHCertificateType,
    load_ssh_public_identity,
)
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey

AUTHORITY, REVOKED = "@cert-authority", "@revoked"
_HASHED = "|1|"


class Trust(NamedTuple):
    """The keys that the files have for one host."""

    keys: Tuple[paramiko.PKey, ...] = ()
    authorities: Tuple[paramiko.PKey, ...] = ()
    revoked: Tuple[paramiko.PKey, ...] = ()


class KnownHosts:
    """The lines of some files; an unreadable file counts as empty."""

    def __init__(self, paths: Sequence[str]):
        self._lines = [line for path in paths for line in _lines(os.path.expanduser(path))]

    def about(self, *names: str) -> Trust:
        """Return the trust in a host with some names; any of the names may have an authority.

        The keys are those of the first name, under which OpenSSH records keys.
        """
        found: Dict[str, List[paramiko.PKey]] = {"": [], AUTHORITY: [], REVOKED: []}
        for marker, patterns, rest in self._lines:
            if marker in found and any(matches(patterns, name) for name in (names if marker else names[:1])):
                found[marker] += _key(rest)
        return Trust(*map(tuple, found.values()))


def matches(patterns: str, name: str) -> bool:
    """Return whether patterns such as ``*.example.com,!gw.example.com``, or a hashed name, match a host."""
    name = name.lower()
    fits = [(each.startswith("!"), _matches(each.lstrip("!"), name)) for each in patterns.split(",")]
    return any(fit for negated, fit in fits if not negated) and not any(fit for negated, fit in fits if negated)


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith(_HASHED):
        return _is_hash_of(pattern, name)
    wildcards = re.escape(pattern.lower()).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(wildcards, name) is not None


def _is_hash_of(hashed: str, name: str) -> bool:
    try:
        return bool(paramiko.HostKeys.hash_host(name, hashed) == hashed)
    except (ValueError, AssertionError, IndexError):  # a damaged line
        return False


def _lines(path: str) -> Iterator[Tuple[str, str, str]]:
    """Yield the marker, the names and the key of each line."""
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            marker, _, rest = line.strip().partition(" ") if line.startswith("@") else ("", "", line.strip())
            names, _, key = rest.strip().partition(" ")
            if key and not names.startswith("#"):
                yield marker, names, key


def _key(text: str) -> List[paramiko.PKey]:
    """Return a list with the key in ``ssh-ed25519 AAAA… comment``; empty for an unknown kind of key."""
    try:
        entry = HostKeyEntry.from_line(f"name {text}")
    except (paramiko.SSHException, InvalidHostKey):
        return []
    return [entry.key] if entry is not None else []


class CertificatesFirst(paramiko.Transport):  # type: ignore[misc]
    """A connection that requests a host's certificate before its bare key.

    Args:
      bare: the known kinds of the host's bare keys, to which the request is limited; empty for all kinds.
    """

    def __init__(self, bare: Collection[str], *arguments: Any, **options: Any):
        self._bare = bare
        super().__init__(*arguments, **options)

    @property
    def preferred_keys(self) -> Sequence[str]:
        """Return the kinds of host keys, in the order of preference."""
        kinds = super().preferred_keys
        certified = [kind for kind in kinds if "-cert-" in kind]
        return (*certified, *(kind for kind in kinds if kind in (self._bare or kinds) and kind not in certified))


def certificate_fault(key: paramiko.PKey, authorities: Sequence[paramiko.PKey], name: str) -> Optional[str]:
    """Return the reason why the certificate of a host's key is not valid for the host; None for a valid one.

    Args:
      name: the host's name, without a port.
    """
    try:
        certificate = _certificate(key)
        if certificate is None:
            return "expected a certificate, found a bare key"
        if _signer(certificate) not in [authority.asbytes() for authority in authorities]:
            return "expected a certificate of a known authority, found one of another"
        certificate.verify_cert_signature()
    except (InvalidSignature, UnsupportedAlgorithm, ValueError) as error:
        return f"expected a certificate with a valid signature, found none ({error or type(error).__name__})"
    return _misuse(certificate, name)


def _certificate(key: paramiko.PKey) -> Optional[SSHCertificate]:
    blob = key.public_blob
    if blob is None:
        return None
    found = load_ssh_public_identity(blob.key_type.encode() + b" " + base64.b64encode(blob.key_blob))
    return found if isinstance(found, SSHCertificate) else None


def _signer(certificate: SSHCertificate) -> bytes:
    line = certificate.signature_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return base64.b64decode(line.split()[1])


def _misuse(certificate: SSHCertificate, name: str) -> Optional[str]:
    """Return the reason why a signed certificate does not apply; None where it applies to this host now."""
    if certificate.type is not SSHCertificateType.HOST:
        return "expected a host's certificate, found a user's"
    if not certificate.valid_after <= time.time() < certificate.valid_before:
        return "its certificate is not valid yet, or no longer"
    if certificate.critical_options:
        return "its certificate has options that are not known"
    principals = [principal.decode(errors="replace") for principal in certificate.valid_principals]
    if not any(matches(principal, name) for principal in principals):
        return f"its certificate is for {', '.join(principals) or 'no name'}, and not for {name}"
    return None
