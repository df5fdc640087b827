"""The sshd of a fake host: further settings for a while, logins counted, certificates of an authority."""

import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from tests.support.hosts import Host
from tests.support.waiting import eventually


def logins(host: Host) -> int:
    """How many have been let in so far."""
    return host.read("/var/log/sshd.log").count("Accepted publickey")


@contextmanager
def sshd(host: Host, lines: str) -> Iterator[None]:
    """A host whose sshd has further settings for a while."""
    before = host.read("/etc/ssh/sshd_config")
    configure(host, lines + before)
    try:
        yield
    finally:
        configure(host, before)


def configure(host: Host, text: str) -> None:
    """Returns once sshd listens with this configuration."""

    def listened() -> int:
        return host.read("/var/log/sshd.log").count("Server listening on")

    wanted = listened() + text.count("Port ")
    host.write("/etc/ssh/sshd_config", text)
    host.reload_sshd()
    eventually("sshd with another configuration", lambda: listened() >= wanted)


def signed(folder: Path, key: str, *options: str) -> str:
    """The certificate that an authority of the test's own gives for a public key."""
    authority = folder / "authority"
    if not authority.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(authority)], check=True)
    (folder / "signed.pub").write_text(key)
    sign = ["ssh-keygen", "-q", "-s", str(authority), "-I", "test", *options, str(folder / "signed.pub")]
    subprocess.run(sign, check=True, stderr=subprocess.DEVNULL)
    return (folder / "signed-cert.pub").read_text()
