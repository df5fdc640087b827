"""A machine that cannot have fake hosts is told everything that it lacks."""

from pathlib import Path
from typing import Iterator

import pytest

from tests.support.hosts import FakeHosts, MissingError, needs
from tests.support.hosts.__main__ import main


@pytest.fixture(autouse=True)
def unknown() -> Iterator[None]:
    """What is missing is found out anew in each test, and once more after it."""
    needs.missing.cache_clear()
    yield
    needs.missing.cache_clear()


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine where the only program is ip, and we are not root."""
    ip = tmp_path / "ip"
    ip.write_text("")
    ip.chmod(0o755)
    monkeypatch.setattr(needs, "SYSTEM_PATH", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)


@pytest.mark.usefixtures("bare")
def test_every_missing_tool_is_named_with_its_package_and_root_too() -> None:
    missing = "\n".join(needs.missing())
    assert "sshd (apt-get install openssh-server)" in missing
    assert "tc (apt-get install iproute2)" in missing
    assert "unshare (apt-get install util-linux)" in missing
    assert "root" in missing
    assert "ip (" not in missing.split("\n")


@pytest.mark.usefixtures("bare")
def test_hosts_are_refused_with_the_same_list() -> None:
    with pytest.raises(MissingError, match="openssh-server"):
        FakeHosts(1)


@pytest.mark.usefixtures("bare")
def test_the_command_prints_the_same_list_and_ends_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "1"]) == 3
    assert "openssh-server" in capsys.readouterr().err


def test_what_the_kernel_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "_found", lambda tool: True)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(needs, "_UNSHARE", [])
    monkeypatch.setattr(needs, "_TRIAL", "echo 'a veth pair'; exit 0")
    assert [lack.split(" (")[0] for lack in needs.missing()] == ["a veth pair"]
