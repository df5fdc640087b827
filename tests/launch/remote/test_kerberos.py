"""What the SSH configuration asks of Kerberos for a host, and why no ticket for it can be had."""

import sys
import threading
from enum import IntFlag
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, List, Optional

import pytest

from launch.remote import kerberos
from launch.remote.kerberos import Kerberos, context, has_ticket, obstacle, read, reason
from launch.remote.ssh_options import SshOptions

CONFIG = """
Host gpu*
    GSSAPIAuthentication Yes
    GSSAPIDelegateCredentials yes
Host cpu01
    GSSAPITrustDns yes
    GSSAPIKeyExchange yes
Host *
    GSSAPIAuthentication no
"""


class Flag(IntFlag):
    mutual_authentication, integrity, delegate_to_peer = 1, 2, 4


class Library:
    """The package gssapi, as far as it is used; ``step`` is what the first step to a host does."""

    RequirementFlag, NameType = Flag, SimpleNamespace(hostbased_service="a service of a host")

    def __init__(self, step: Callable[[], Any] = lambda: b"", lifetime_s: Optional[int] = 60):
        self.asked: List[Any] = []
        self.OID = SimpleNamespace(from_int_seq=lambda numbers: f"OID {numbers}")
        self._step, self._lifetime_s = step, lifetime_s

    def Name(self, name: str, kind: str) -> str:
        return f"{name}, {kind}"

    def SecurityContext(self, **options: Any) -> Any:
        self.asked.append(options)
        return SimpleNamespace(step=self._step)

    def Credentials(self, usage: str, mechs: List[str]) -> Any:
        if self._lifetime_s is None:
            raise RuntimeError("no cache")
        return SimpleNamespace(lifetime=self._lifetime_s)


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    def in_place(library: Any) -> Any:
        monkeypatch.setitem(sys.modules, kerberos.PACKAGE, library)
        return library

    return in_place


def refuse(text: str) -> Callable[[], Any]:
    def step() -> Any:
        raise ValueError(text)

    return step


@pytest.mark.not_fast
@pytest.mark.parametrize(
    ("host", "wanted"),
    [
        ("gpu01", Kerberos("gpu01", logs_in=True, delegates=True)),
        ("cpu01", Kerberos("cpu01", trusts_dns=True, exchanges_keys=True)),
        ("cpu02", Kerberos("cpu02")),
    ],
)
def test_the_configuration_decides_for_each_host(tmp_path: Path, host: str, wanted: Kerberos) -> None:
    (tmp_path / "config").write_text(CONFIG)
    assert read(SshOptions(str(tmp_path / "config"), 5.0).about(host), host) == wanted


def test_a_ticket_is_for_the_host_that_is_dialled_and_is_handed_on_only_where_that_is_asked_for(put: Any) -> None:
    library = put(Library())
    context(Kerberos("gpu01", logs_in=True))
    context(Kerberos("gpu01", logs_in=True, delegates=True))
    kept, delegated = library.asked
    assert kept["name"] == "host@gpu01, a service of a host" and kept["usage"] == "initiate"
    assert kept["mech"] == "OID 1.2.840.113554.1.2.2"
    assert kept["flags"] == Flag.mutual_authentication | Flag.integrity
    assert delegated["flags"] == kept["flags"] | Flag.delegate_to_peer


def test_only_with_trust_in_dns_its_name_for_a_host_counts(put: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    library = put(Library())
    monkeypatch.setattr("socket.getfqdn", lambda host: f"{host}.example.com")
    context(Kerberos("gpu01", trusts_dns=True))
    context(Kerberos("gpu01"))
    assert [each["name"].partition(",")[0] for each in library.asked] == ["host@gpu01.example.com", "host@gpu01"]


def test_a_ticket_that_can_be_had_is_no_obstacle_and_is_not_handed_on_to_find_out(put: Any) -> None:
    library = put(Library())
    assert obstacle(Kerberos("gpu01", logs_in=True, delegates=True), 5.0) is None
    assert library.asked[0]["flags"] == Flag.mutual_authentication | Flag.integrity


def test_without_the_package_the_command_that_installs_it_is_named(put: Any) -> None:
    put(None)
    found = obstacle(Kerberos("gpu01"), 5.0) or ""
    assert found.startswith(f"{sys.executable} cannot import gssapi (")
    assert found.endswith(f"; install it with `{sys.executable} -m pip install gssapi`")
    assert not has_ticket()


def test_a_refusal_has_the_words_of_kerberos_and_the_next_step(put: Any) -> None:
    put(Library(refuse("Major (458752): No credentials,\n Minor (2529639053): No Kerberos credentials available")))
    assert obstacle(Kerberos("gpu01"), 5.0) == (
        "No Kerberos credentials available; see `klist`, and get a ticket with `kinit`"
    )


def test_servers_of_kerberos_that_do_not_answer_hold_nobody_up(put: Any) -> None:
    answer = threading.Event()
    put(Library(lambda: answer.wait(60)))
    assert obstacle(Kerberos("gpu01"), 0.05) == "no answer from a server of Kerberos within 0.05 s; see `kinit`"
    answer.set()


@pytest.mark.parametrize(("lifetime_s", "good"), [(60, True), (0, False), (None, False)])
def test_a_ticket_that_has_expired_is_none(put: Any, lifetime_s: Optional[int], good: bool) -> None:
    put(Library(lifetime_s=lifetime_s))
    assert has_ticket() is good


@pytest.mark.parametrize("text", ["Major (1): a, Minor (2): ", "expired", "Minor (2): b"])
def test_an_error_without_numbers_stays_as_it_is(text: str) -> None:
    assert reason(ValueError(text)) == text.strip()
