"""Lines of known hosts as OpenSSH reads them, and the keys of hosts that they permit."""

import base64
from pathlib import Path
from typing import Any, List

import paramiko
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from launch.remote.access import Judge
from launch.remote.connection_failures import RevokedHostKey, UnknownHostKey
from launch.remote.known_hosts import KnownHosts, Trust, matches

HASHED = paramiko.HostKeys.hash_host("gpu01", "|1|MDEyMzQ1Njc4OTAxMjM0NTY3ODk=|")


def line_of(key: Any) -> str:
    return str(key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())


def as_paramiko(line: str) -> paramiko.PKey:
    """The key in a line."""
    return paramiko.Ed25519Key(msg=paramiko.Message(base64.b64decode(line.split()[1])))


OWN, OTHER, CA = (ed25519.Ed25519PrivateKey.generate() for _ in range(3))


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


JUDGED: List[Any] = [
    (Trust((key(OWN),)), key(OWN), None),
    (Trust((key(OTHER), key(OWN))), key(OWN), None),
    (Trust((key(OTHER),)), key(OWN), paramiko.BadHostKeyException),
    (Trust(), key(OWN), UnknownHostKey),
    (Trust((key(OWN),), (), (key(OWN),)), key(OWN), RevokedHostKey),
    (Trust((key(OWN),), (key(CA),)), key(OWN), None),
]


@pytest.mark.parametrize(("trust", "shown", "refused"), JUDGED)
def test_a_host_key_is_taken_or_refused_by_all_that_is_known(trust: Trust, shown: Any, refused: Any) -> None:
    judge = Judge(trust)
    if refused is None:
        judge.missing_host_key(None, "gpu01", shown)
        return
    with pytest.raises(refused):
        judge.missing_host_key(None, "gpu01", shown)


@pytest.mark.parametrize(("trust", "known"), [(Trust((), (key(CA),)), True), (Trust(), False)])
def test_a_host_that_an_authority_certifies_is_refused_as_unknown_with_that(trust: Trust, known: bool) -> None:
    with pytest.raises(UnknownHostKey) as caught:
        Judge(trust).missing_host_key(None, "gpu01", key(OWN))
    assert caught.value.authority is known
