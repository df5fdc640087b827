"""Lines of known hosts as OpenSSH reads them, and the certificates of hosts."""

import base64
import socket
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import paramiko
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    SSHCertificateBuilder,
    SSHCertificateType,
)

from launch.remote.access import Judge
from launch.remote.connection_failures import BadCertificate, RevokedHostKey, UnknownHostKey
from launch.remote.known_hosts import CertificatesFirst, KnownHosts, Trust, certificate_fault, matches

NOW = int(time.time())
HASHED = paramiko.HostKeys.hash_host("gpu01", "|1|MDEyMzQ1Njc4OTAxMjM0NTY3ODk=|")


def line_of(key: Any) -> str:
    return str(key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())


def as_paramiko(line: str) -> paramiko.PKey:
    """The key in a line, with its certificate if it is one."""
    return paramiko.Ed25519Key(msg=paramiko.Message(base64.b64decode(line.split()[1])))


OWN, OTHER, CA = (ed25519.Ed25519PrivateKey.generate() for _ in range(3))


def certificate(signer: Any = CA, **changed: Any) -> paramiko.PKey:
    """The certificate of the key ``OWN`` for gpu01, with some things changed."""
    values: Dict[str, Any] = {
        "public_key": OWN.public_key(), "type": SSHCertificateType.HOST, "key_id": b"gpu01", "serial": 1,
        "valid_principals": [b"gpu01"], "valid_after": NOW - 3600, "valid_before": NOW + 3600, **changed,
    }  # fmt: skip
    builder = SSHCertificateBuilder()
    if not values["valid_principals"]:
        del values["valid_principals"]
        builder = builder.valid_for_all_principals()  # type: ignore[no-untyped-call]
    for name, value in values.items():
        builder = getattr(builder, name)(value)
    if changed.get("serial") == 2:
        builder = builder.add_critical_option(b"force-command", b"true")
    return as_paramiko(builder.sign(signer).public_bytes().decode())


def key(private: Any) -> paramiko.PKey:
    return as_paramiko(line_of(private))


@pytest.mark.parametrize(
    ("patterns", "name", "meant"),
    [
        ("gpu01", "gpu01", True),
        ("gpu01", "gpu011", False),
        ("a,GPU01", "gpu01", True),
        ("*.example.com", "gpu01.example.com", True),
        ("*.example.com", "gpu01.example.com.evil", False),
        ("gpu0?", "gpu01", True),
        ("*,!gpu01", "gpu01", False),
        ("!gpu01", "gpu02", False),
        ("[gpu01]:2200", "[gpu01]:2200", True),
        ("[gpu01]:2200", "g", False),
        ("|1|damaged", "gpu01", False),
        (HASHED, "gpu01", True),
        (HASHED, "gpu02", False),
    ],
)
def test_names_are_matched_as_openssh_matches_them(patterns: str, name: str, meant: bool) -> None:
    assert matches(patterns, name) is meant


def known(folder: Path, *lines: str) -> KnownHosts:
    path = folder / "known_hosts"
    path.write_text("# a comment\n\nodd\ngpu01 ssh-odd AAAA\ngpu01 ssh-ed25519 damaged\n" + "\n".join(lines) + "\n")
    return KnownHosts([str(path), str(folder / "none")])


def test_all_lines_of_a_host_count_and_markers_make_the_difference(tmp_path: Path) -> None:
    found = known(
        tmp_path,
        f"gpu01 {line_of(OWN)} comment",
        f"gpu* {line_of(OTHER)}",
        f"@cert-authority * {line_of(CA)}",
        f"@revoked gpu02 {line_of(OWN)}",
        f"@other gpu01 {line_of(CA)}",
    )
    assert found.about("gpu01") == Trust((key(OWN), key(OTHER)), (key(CA),), ())
    assert found.about("gpu02") == Trust((key(OTHER),), (key(CA),), (key(OWN),))
    assert found.about("cpu01") == Trust((), (key(CA),), ())


def test_an_authority_may_be_named_for_a_host_without_its_port(tmp_path: Path) -> None:
    found = known(tmp_path, f"@cert-authority gpu01 {line_of(CA)}", f"gpu01 {line_of(OWN)}")
    assert found.about("[gpu01]:2200", "gpu01") == Trust((), (key(CA),), ())


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (certificate(), None),
        (certificate(valid_principals=[b"cpu01", b"gpu*"]), None),
        (key(OWN), "expected a certificate, found a bare key"),
        (certificate(OTHER), "expected a certificate of a known authority, found one of another"),
        (certificate(type=SSHCertificateType.USER), "expected a host's certificate, found a user's"),
        (certificate(valid_before=NOW - 1), "its certificate is not valid yet, or no longer"),
        (certificate(valid_after=NOW + 1800), "its certificate is not valid yet, or no longer"),
        (certificate(valid_principals=[b"gpu02"]), "its certificate is for gpu02, and not for gpu01"),
        (certificate(serial=2), "its certificate has options that are not known"),
    ],
)
def test_a_certificate_is_good_for_its_host_and_its_time_alone(shown: paramiko.PKey, why: Optional[str]) -> None:
    assert certificate_fault(shown, [key(CA)], "gpu01") == why


def test_a_certificate_for_no_name_is_for_no_host() -> None:
    shown = certificate(valid_principals=[])
    assert certificate_fault(shown, [key(CA)], "gpu01") == "its certificate is for no name, and not for gpu01"


def test_a_certificate_that_was_changed_is_not_signed() -> None:
    shown = certificate()
    blob = shown.public_blob.key_blob
    shown.public_blob.key_blob = blob.replace(b"gpu01", b"gpu02")
    assert "valid signature" in str(certificate_fault(shown, [key(CA)], "gpu02"))


JUDGED: List[Any] = [
    (Trust((key(OWN),)), key(OWN), None),
    (Trust((key(OTHER), key(OWN))), key(OWN), None),
    (Trust((key(OTHER),)), key(OWN), paramiko.BadHostKeyException),
    (Trust(), key(OWN), UnknownHostKey),
    (Trust((key(OWN),), (), (key(OWN),)), key(OWN), RevokedHostKey),
    (Trust((), (key(CA),)), certificate(), None),
    (Trust((), (key(CA),)), key(OWN), BadCertificate),
    (Trust((key(OWN),), (key(CA),)), key(OWN), None),
    (Trust((), (key(CA),), (key(CA),)), certificate(), UnknownHostKey),
    (Trust((), (key(CA),), (key(OWN),)), certificate(), RevokedHostKey),
    (Trust(), certificate(), UnknownHostKey),
]


@pytest.mark.parametrize(("trust", "shown", "refused"), JUDGED)
def test_a_host_key_is_taken_or_refused_by_all_that_is_known(trust: Trust, shown: Any, refused: Any) -> None:
    judge = Judge(trust, "gpu01")
    if refused is None:
        judge.missing_host_key(None, "gpu01", shown)
        return
    with pytest.raises(refused):
        judge.missing_host_key(None, "gpu01", shown)


@pytest.mark.parametrize("bare", [(), ("rsa-sha2-512", "rsa-sha2-256")])
def test_certificates_are_requested_first_and_bare_keys_of_kinds_that_are_known(bare: Tuple[str, ...]) -> None:
    near, far = socket.socketpair()
    with near, far:
        transport = CertificatesFirst(bare, near)
        kinds = list(transport.preferred_keys)
        transport.close()
    certified = [kind for kind in kinds if "-cert-" in kind]
    assert "ssh-ed25519-cert-v01@openssh.com" in certified == kinds[: len(certified)]
    rest = kinds[len(certified) :]
    assert rest == list(bare) if bare else {"ssh-ed25519", "rsa-sha2-512"} < set(rest)
