"""The launcher's code in a working folder, as after an earlier verb: unpacked and compiled once for a process's tests.

A host that gets the code for the first time unpacks it, brings it to the disk and compiles it, for a second and more.
Tests of just that leave it out.
"""

import atexit
import compileall
import io
import os
import shutil
import tarfile
import tempfile
from functools import lru_cache
from pathlib import Path

from launch.hosts.bundle import launcher_code


def lay(workdir: Path) -> None:
    """Put the code into a working folder where there is none yet."""
    code = workdir / "code"
    if not workdir.exists():
        code.mkdir(mode=0o700, parents=True)
        shutil.copytree(str(_unpacked()), str(code / _unpacked().name), copy_function=os.link)


@lru_cache(maxsize=None)
def _unpacked() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="laid-code-"))
    atexit.register(shutil.rmtree, str(folder), ignore_errors=True)
    bundle = launcher_code().bundles["launcher"]
    with tarfile.open(fileobj=io.BytesIO(bundle.tar)) as archive:
        archive.extraction_filter = lambda member, path: member  # type: ignore[attr-defined] # newer Pythons need one
        archive.extractall(str(folder / bundle.digest))
    compileall.compile_dir(str(folder), quiet=1)
    return folder / bundle.digest
