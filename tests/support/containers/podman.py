"""The real podman, with an image of this machine's own files: no registry is needed, and nothing of it stays.

The image is a folder of links. A container sees this machine's /usr and Python through ``args``.
"""

import io
import os
import resource
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, Dict, List

import pytest

from tests.support.hosts import needs
from tests.support.waiting import PATIENCE_S

IMAGE = "localhost/launch-test:1"
_CONF = """
[containers]
default_ulimits = [{limits}]
[engine]
runtime = "{runtime}"
cgroup_manager = "cgroupfs"
events_logger = "none"
"""
_STORAGE = """
[storage]
driver = "vfs"
graphroot = "{folder}/store"
runroot = "{folder}/run"
"""


class Podman:
    """podman with files in a folder of the test's own. Skips the test where it does not work."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        missing = needs.lacking("podman")
        if missing:
            pytest.skip(f"needs podman: this machine lacks {missing[0]}")
        # podman would raise limits that a machine without CAP_SYS_RESOURCE cannot raise.
        limits = {"nofile": min(1024, resource.getrlimit(resource.RLIMIT_NOFILE)[0]), "nproc": 1024}
        ulimits = ", ".join(f'"{name}={value}:{value}"' for name, value in limits.items())
        (folder / "image").mkdir(parents=True)
        for name, text in {"containers": _CONF, "storage": _STORAGE}.items():
            (folder / name).write_text(
                text.format(limits=ulimits, runtime="runc" if shutil.which("runc") else "crun", folder=folder)
            )
            monkeypatch.setenv({"containers": "CONTAINERS_CONF", "storage": "CONTAINERS_STORAGE_CONF"}[name],
                               str(folder / name))  # fmt: skip
        self._try("import", str(_image(folder)), IMAGE)
        self._try("run", "--rm", "--network=host", "--pid=host", "--ipc=host", "--volume=/usr:/usr:ro",
                  "--entrypoint=true", IMAGE)  # fmt: skip

    def _try(self, *words: str) -> None:
        ran = self._run(*words)
        if ran.returncode != 0:
            pytest.skip(f"needs podman: it refuses {words[0]}: {ran.stderr.strip().splitlines()[-1:]}")

    def _run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(["podman", *words], capture_output=True, text=True, timeout=PATIENCE_S)

    @property
    def names(self) -> List[str]:
        """Return the names of all its containers."""
        return self._run("ps", "--all", "--format", "{{.Names}}").stdout.split()

    def key(self) -> Dict[str, Any]:
        """Return the value of ``container`` in a hosts file."""
        seen = dict.fromkeys(["/usr", sys.prefix, sys.base_prefix])
        return {"image": IMAGE, "runtime": "podman", "python": sys.executable,
                "args": [f"--volume={folder}:{folder}:ro" for folder in seen]}  # fmt: skip

    def end(self) -> None:
        """Remove its containers, and what it has mounted."""
        self._run("rm", "--force", "--all")
        self._run("system", "reset", "--force")


def _image(folder: Path) -> Path:
    """Write an image with empty folders, and links as this machine has them."""
    archive = folder / "image.tar"
    with tarfile.open(str(archive), "w") as tar:
        for name in ("bin", "sbin", "lib", "lib64"):
            if os.path.islink(f"/{name}"):
                tar.add(f"/{name}", name)
        for name in ("usr", "tmp", "etc"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        entry = tarfile.TarInfo("etc/passwd")
        entry.size = len(b"root:x:0:0::/:/bin/sh\n")
        tar.addfile(entry, io.BytesIO(b"root:x:0:0::/:/bin/sh\n"))
    return archive
