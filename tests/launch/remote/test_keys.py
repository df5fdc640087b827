"""Keys: each read once, a passphrase asked for once and only where there is no other way."""

import base64
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_ssh_private_key,
)

from launch.errors import HostProblem
from launch.remote.private_keys import LoginKeys, public_part
from tests.support.ssh.keys import new_key
from tests.support.waiting import PATIENCE_S

SECRET = "correct horse"
Make = Callable[..., str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own, and no ssh-agent."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / ".ssh").mkdir()
    return tmp_path


@pytest.fixture
def make(home: Path) -> Make:
    """Makes a key file below ``~/.ssh``; with a passphrase it is locked."""

    def generate(name: str, passphrase: str = "", **options: Any) -> str:
        return str(new_key(home / ".ssh" / name, passphrase, **options))

    return generate


@pytest.fixture
def agent(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """An ssh-agent of the test's own, and what gives it a key."""
    if shutil.which("ssh-agent") is None:
        pytest.skip("needs ssh-agent: this machine lacks it (apt-get install openssh-client)")
    sock = str(home / "agent")

    def give(path: str) -> None:
        subprocess.run(["ssh-add", "-q", path], check=True, timeout=PATIENCE_S)

    with subprocess.Popen(["ssh-agent", "-D", "-a", sock], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()  # it says where it listens
        monkeypatch.setenv("SSH_AUTH_SOCK", sock)
        yield give
        process.terminate()


class Asked:
    """Whoever answers for passphrases, and what they were asked for."""

    def __init__(self, *answers: str):
        self.answers = list(answers)
        self.paths: List[str] = []

    def __call__(self, path: str) -> str:
        self.paths.append(path)
        return self.answers.pop(0)


def offered(keys: LoginKeys, files: List[str], only: bool = False, agent: Optional[str] = None) -> List[bytes]:
    try:
        return [key.asbytes() for key in keys.offer(files, only, agent)]
    finally:
        keys.close()


def test_a_named_key_is_offered_and_one_that_is_not_there_is_passed_over(make: Make) -> None:
    path = make("id")
    assert offered(LoginKeys(Asked()), ["/nowhere/id", path]) == [public_part(path)]


@pytest.mark.parametrize("options", [{}, {"pem": True, "kind": "rsa"}, {"kind": "ecdsa"}], ids=str)
def test_a_passphrase_is_asked_for_once_however_many_hosts_the_key_is_for(make: Make, options: Dict[str, Any]) -> None:
    path, asked = make("id", SECRET, **options), Asked(SECRET)
    keys = LoginKeys(asked)
    assert [len(keys.offer([path])) for _ in range(3)] == [1, 1, 1]
    assert asked.paths == [path]
    assert keys.offer([path])[0].can_sign()


def test_a_wrong_passphrase_is_asked_for_again_and_then_told(make: Make) -> None:
    path = make("id", SECRET)
    assert len(offered(LoginKeys(Asked("wrong", SECRET)), [path])) == 1
    with pytest.raises(HostProblem) as caught:
        offered(LoginKeys(Asked("a", "b", "c")), [path])
    assert str(caught.value) == (
        f"this machine: the key {path} was not unlocked: 3 wrong passphrases; unlock it with `ssh-add {path}`"
    )
    assert SECRET not in str(caught.value)


def test_without_a_terminal_the_command_that_unlocks_the_key_is_told(make: Make) -> None:
    path = make("id", SECRET)
    with pytest.raises(HostProblem) as caught:
        offered(LoginKeys(Asked("")), [path])
    assert str(caught.value).endswith(f"and there is no terminal to ask for it; unlock it with `ssh-add {path}`")


def test_a_file_that_is_no_key_is_told(home: Path) -> None:
    (home / "id").write_text("hello")
    with pytest.raises(HostProblem) as caught:
        offered(LoginKeys(Asked()), [str(home / "id")])
    assert str(caught.value).startswith(f"this machine: expected a private key in {home}/id, found none")


def test_the_public_half_is_known_without_the_passphrase_and_without_its_file(make: Make) -> None:
    path = make("id", SECRET)
    beside = public_part(path)
    os.unlink(path + ".pub")
    assert public_part(path) == beside is not None


def test_a_locked_key_that_the_agent_holds_needs_no_passphrase(
    make: Make, agent: Callable[[str], None], home: Path
) -> None:
    path = make("id")
    agent(path)
    subprocess.run(["ssh-keygen", "-q", "-p", "-a", "1", "-N", SECRET, "-f", path], check=True, timeout=PATIENCE_S)
    keys = LoginKeys(Asked())
    (key,) = keys.offer([path])
    assert key.sign_ssh_data(b"data", key.get_name())
    keys.close()


def test_the_agents_other_keys_come_after_the_named_one_unless_that_is_to_be_the_only_one(
    make: Make, agent: Callable[[str], None]
) -> None:
    named, other = make("named"), make("other")
    agent(other)
    assert offered(LoginKeys(Asked()), [named]) == [public_part(named), public_part(other)]
    assert offered(LoginKeys(Asked()), [named], only=True) == [public_part(named)]


def test_with_identities_only_and_no_named_file_the_usual_keys_are_offered_as_by_openssh(
    make: Make, agent: Callable[[str], None]
) -> None:
    usual, other = make("id_ed25519"), make("other")
    agent(other)
    assert offered(LoginKeys(Asked()), [], only=True) == [public_part(usual)]


def test_the_agent_that_the_configuration_names_holds_the_keys(
    make: Make, agent: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    other, sock = make("other"), os.environ["SSH_AUTH_SOCK"]
    agent(other)
    assert offered(LoginKeys(Asked()), [], agent="SSH_AUTH_SOCK") == [public_part(other)]
    assert offered(LoginKeys(Asked()), [], agent="none") == []
    monkeypatch.setenv("ELSEWHERE", sock)
    monkeypatch.delenv("SSH_AUTH_SOCK")
    assert offered(LoginKeys(Asked()), []) == []
    assert offered(LoginKeys(Asked()), [], agent=sock) == [public_part(other)]
    assert offered(LoginKeys(Asked()), [], agent="$ELSEWHERE") == [public_part(other)]
    assert offered(LoginKeys(Asked()), [], agent=sock + "-gone") == []


def test_a_key_of_a_security_key_is_left_out_and_the_next_one_offered(make: Make, home: Path) -> None:
    def text(*values: bytes) -> bytes:
        return b"".join(len(value).to_bytes(4, "big") + value for value in values)

    kind = b"sk-ssh-ed25519@openssh.com"
    public = text(kind, bytes(32), b"ssh:")
    private = b"openssh-key-v1\0" + text(b"none", b"none", b"") + (1).to_bytes(4, "big") + text(public, bytes(64))
    lines = base64.b64encode(private).decode()
    path = home / ".ssh" / "id_sk"
    path.write_text(f"-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}\n-----END OPENSSH PRIVATE KEY-----\n")
    named = make("named")
    assert offered(LoginKeys(Asked()), [str(path), named]) == [public_part(named)]


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
@pytest.mark.parametrize("passphrase", ["", SECRET])
def test_a_key_as_openssl_writes_it_is_read(make: Make, kind: str, passphrase: str) -> None:
    path = make("id", kind=kind)
    key = load_ssh_private_key(Path(path).read_bytes(), None)
    how = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    public = public_part(path)
    Path(path).write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how))
    os.unlink(path + ".pub")
    asked = Asked("wrong", passphrase)
    assert offered(LoginKeys(asked), [path]) == [public]
    assert len(asked.paths) == (2 if passphrase else 0)


def test_where_none_is_named_the_usual_ones_are_offered_and_of_locked_ones_only_where_there_is_no_other(
    make: Make,
) -> None:
    locked = make("id_ed25519", SECRET)
    asked = Asked(SECRET)
    assert offered(LoginKeys(asked), []) == [public_part(locked)] and asked.paths == [locked]
    free = make("id_ecdsa", kind="ecdsa")
    assert offered(LoginKeys(Asked()), []) == [public_part(free)]
