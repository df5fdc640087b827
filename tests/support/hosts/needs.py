"""What a machine must have for fake hosts, and which Debian package brings it."""

import functools
import os
import shutil
import subprocess
import sys
from typing import List, Tuple

from tests.support.hosts.errors import MissingError
from tests.support.hosts.tool import SYSTEM_PATH, environment

_PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "pivot_root": "util-linux",
    "mount": "mount",
    "hostname": "hostname",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "ssh-keyscan": "openssh-client",
    "nft": "nftables",
}

_OTHERS = {  # what further tests need
    "chromium": "chromium",
    "munged": "munge",
    "podman": "podman",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "srun": "slurm-client",
    "systemd": "systemd",
}

# Each step is tried in namespaces of its own, which end with the shell. A step that
# fails does not hide the ones after it.
_TRIAL = """
try() { what=$1; shift; "$@" >/dev/null 2>&1 || echo "$what"; }
try 'a tmpfs mount' mount -t tmpfs trial /mnt
mkdir -p /mnt/upper /mnt/work /mnt/root
try 'an overlay of /' mount -t overlay trial -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
try 'a proc mount' mount -t proc proc /mnt/root/proc
try 'a bridge' ip link add trial type bridge
try 'a veth pair' ip link add here type veth peer name there
try 'a tbf queue' tc qdisc add dev here root tbf rate 1mbit burst 10kb latency 50ms
"""
_UNSHARE = ["unshare", "--net", "--pid", "--mount", "--uts", "--ipc", "--fork", "--kill-child"]


@functools.lru_cache(maxsize=None)
def missing() -> Tuple[str, ...]:
    """Everything that this machine lacks, as a person would fix it. Empty: fake hosts work."""
    if not sys.platform.startswith("linux"):
        return (f"Linux (this is {sys.platform})",)
    lacks = lacking(*_PACKAGES)
    if os.geteuid() != 0:
        return (*lacks, "root (run as root, e.g. with sudo)")
    return (*lacks, *(() if lacks else _refused()))


def lacking(*tools: str) -> List[str]:
    """Those of some programs that this machine lacks, as a person would fix it."""
    packages = {**_PACKAGES, **_OTHERS}
    return [f"{tool} (apt-get install {packages[tool]})" for tool in tools if not _found(tool)]


def command() -> str:
    """Return the one command that adds what is missing and tests again; "" where no command can."""
    packages = sorted({package for tool, package in {**_PACKAGES, **_OTHERS}.items() if not _found(tool)})
    sudo = "sudo " if os.geteuid() else ""
    install = f"{sudo}apt-get install --yes {' '.join(packages)} && " if packages else ""
    return f"{install}{sudo}make test" if sudo or packages else ""


def require() -> None:
    """Raises MissingError where fake hosts cannot work."""
    if missing():
        raise MissingError(missing())


def _found(tool: str) -> bool:
    return shutil.which(tool, path=SYSTEM_PATH) is not None


def _refused() -> List[str]:
    """What the kernel does not let us do, as in a container without CAP_SYS_ADMIN."""
    trial = subprocess.run(
        [*_UNSHARE, "sh", "-c", _TRIAL],
        capture_output=True,
        text=True,
        timeout=30,
        env=environment(),
    )
    advice = "(refused by the kernel: use a machine, or a privileged container)"
    if trial.returncode and not trial.stdout:
        return [f"new namespaces: {trial.stderr.strip()} {advice}"]
    return [f"{what} {advice}" for what in trial.stdout.splitlines()]
