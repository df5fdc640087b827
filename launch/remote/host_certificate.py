"""The certificate with which a host proves that an authority knows its key."""

import base64
import time
from typing import Any, Collection, Optional, Sequence

import paramiko
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    SSHCertificate,
    SSHCertificateType,
    load_ssh_public_identity,
)

from launch.remote.known_hosts import matches


class CertificatesFirst(paramiko.Transport):  # type: ignore[misc]
    """A connection that requests a host's certificate before its bare key.

    Args:
      bare: the kinds of bare keys that are known of the host, which alone are requested; none: all kinds.
    """

    def __init__(self, bare: Collection[str], *arguments: Any, **options: Any):
        self._bare = bare
        super().__init__(*arguments, **options)

    @property
    def preferred_keys(self) -> Sequence[str]:
        """Return the kinds of host keys, the most wanted first."""
        kinds = super().preferred_keys
        certified = [kind for kind in kinds if "-cert-" in kind]
        return (*certified, *(kind for kind in kinds if kind in (self._bare or kinds) and kind not in certified))


def fault(key: paramiko.PKey, authorities: Sequence[paramiko.PKey], name: str) -> Optional[str]:
    """Return why the certificate of a host's key is not valid for the host; None where it is.

    Args:
      name: of the host, without a port.
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
    """Return what a signed certificate is not made for; None where it is made for this host, now."""
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
