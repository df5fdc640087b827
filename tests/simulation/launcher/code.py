"""The launcher's code on a simulated host. The product's ``bootstrap`` looks whether it is whole, and has it sent."""

import hashlib
import json
import os
import zlib
from contextlib import suppress
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, Callable, Dict

from launch.hosts.bundle import Bundle, Code

_FILE, _DATA = "launch.py", b"print(1)"
_MANIFEST = json.dumps({_FILE: [0o600, len(_DATA), hashlib.sha256(_DATA).hexdigest()]}).encode()
_DIGEST = hashlib.sha256(_MANIFEST).hexdigest()[:16]
CODE = Code({"launcher": Bundle(_DATA, _DIGEST)})
_FULL = SimpleNamespace(f_bavail=0, f_frsize=4096, f_favail=0)  # of a disk that takes no code
_GZIP = 31  # of zlib: with the head of a gzip file
_MAIN = "\nmain()\n"  # the last line of the bootstrap
_BOOTSTRAP: Any = find_spec("launch.agent.bootstrap")
_TEXT = _BOOTSTRAP.loader.get_source(_BOOTSTRAP.name)  # which a mutant may have changed
assert _TEXT.endswith(_MAIN)
_DEFINED = compile(_TEXT[: -len(_MAIN)], "bootstrap.py", "exec")


def install(disk: Any, workdir: Any, data: bytes = _DATA) -> None:
    """Put the code on a disk."""
    for name, content in [(".manifest", _MANIFEST), (_FILE, data)]:
        disk.write(f"{workdir}/code/{_DIGEST}/{name}", content, durable=True)


def damage(machine: Any) -> None:
    """Change one byte of the code on a host."""
    with suppress(OSError):  # a full disk takes no damage of this kind
        install(machine.disk, machine.folder.workdir, _DATA.replace(b"1", b"("))


def has_code(machine: Any, greeting: Dict[str, Any], calls: Any, tell: Callable[[Any], None]) -> bool:
    """Return whether the host has the code, as ``bootstrap`` does, which has what is missing or damaged sent.

    Args:
      calls: the program's calls of the system, in the place of ``os``: ``read`` and ``_exit``.
    """
    disk, workdir = machine.disk, machine.folder.workdir
    names: Dict[str, Any] = {"open": disk.handles.open, "__name__": "bootstrap"}
    exec(_DEFINED, names)

    def unpack(data: bytes, digest: str, folder: str) -> None:
        install(disk, workdir, zlib.decompress(data, _GZIP))

    names.update(
        os=SimpleNamespace(
            path=os.path, lstat=disk.lstat, read=calls.read, _exit=calls._exit, statvfs=lambda folder: _FULL
        ),
        tell=tell, unpack=unpack, refusal=lambda workdir: None, make=lambda folder: None, renew=lambda folder: None,
    )  # fmt: skip
    return bool(names["has_code"](greeting, str(workdir)))


def runs(machine: Any) -> bool:
    """Return whether Python can read the code there."""
    return bool(machine.disk.read(f"{machine.folder.workdir}/code/{_DIGEST}/{_FILE}") == _DATA)
