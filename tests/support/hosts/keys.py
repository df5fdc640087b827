"""Keys and configuration for reaching fake hosts over SSH."""

from pathlib import Path
from typing import Iterable, Tuple

from tests.support.hosts import tool

HOST_KEY = "etc/ssh/ssh_host_ed25519_key"

_SSHD_CONFIG = f"""\
Port 22
ListenAddress 0.0.0.0
HostKey /{HOST_KEY}
PidFile /run/sshd.pid
AuthorizedKeysFile /root/.ssh/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PrintMotd no
Subsystem sftp internal-sftp
"""


def generate(path: Path) -> None:
    """A new pair of keys: ``path`` and ``path``.pub, in place of an older one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in (path, public(path)):
        if old.exists():
            old.unlink()
    tool.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "fake-hosts", "-f", str(path)])


def public(path: Path) -> Path:
    """Where the public half of the key at ``path`` is."""
    return path.with_name(path.name + ".pub")


def seed(folder: Path, user_key: Path, hosts_file: str, name: str) -> None:
    """The files that make a copy of this machine the host ``name``, with a host key of its own."""
    generate(folder / HOST_KEY)
    _write(folder / "etc/ssh/sshd_config", _SSHD_CONFIG)
    _write(folder / "etc/hosts", hosts_file)
    _write(folder / "etc/hostname", f"{name}\n")
    _write(folder / "root/.ssh/authorized_keys", public(user_key).read_text())
    (folder / "root/.ssh").chmod(0o700)


def hosts_file(addresses: Iterable[Tuple[str, str]]) -> str:
    """An /etc/hosts for pairs of name and address."""
    own = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n"
    return own + "".join(f"{address} {name}\n" for name, address in addresses)


def known_host(name: str, address: str, host_key: Path) -> str:
    """The line of known_hosts that trusts this key for the name and the address."""
    kind, key = public(host_key).read_text().split()[:2]
    return f"{name},{address} {kind} {key}\n"


def client_config(addresses: Iterable[Tuple[str, str]], user_key: Path, known_hosts: Path) -> str:
    """A configuration for ssh that knows every host by name and by address, and trusts only ``known_hosts``."""
    entries = "".join(f"Host {name} {address}\n    HostName {address}\n\n" for name, address in addresses)
    return f"""\
{entries}Host *
    User root
    Port 22
    IdentityFile {user_key}
    IdentitiesOnly yes
    UserKnownHostsFile {known_hosts}
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    BatchMode yes
    ConnectTimeout 10
"""


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
