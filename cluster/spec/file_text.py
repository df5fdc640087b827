"""The text of a hosts file; a folder, a pipe, a device or a huge file is refused without being read."""

import difflib
import itertools
import os
import shlex
import stat
from pathlib import Path
from typing import List

from cluster.errors import SpecError
from cluster.spec.place import Place

LARGEST_MIB = 2  # one of 10,000 tasks, each on a line of its own, has less than one
HOSTS_FILE = "a hosts file"
LISTED = 1000  # names of a folder that are looked at for a better one
_SHORTER = 'write ranges: "gpu[01-64]"'
_KINDS = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))


def text_of(path: Path, what: str = HOSTS_FILE) -> str:
    """Read the hosts file, or another file of YAML, at ``path``.

    Args:
      what: the file's kind in words, for errors.

    Raises:
      SpecError: it is no text file, or cannot be read.
    """
    try:
        mode = os.stat(str(path)).st_mode
        if not stat.S_ISREG(mode):
            kind = next((name for is_one, name in _KINDS if is_one(mode)), "a device")
            raise _refusal(path, what, kind, _inside(path) if stat.S_ISDIR(mode) else "write it to a file")
        with open(str(path), "rb") as file:
            data = file.read((LARGEST_MIB << 20) + 1)
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise _refusal(path, f"{what} that can be read", reason, _next_step(path, error)) from error
    if len(data) > LARGEST_MIB << 20:
        raise _refusal(
            path, f"{what} of at most {LARGEST_MIB} MiB", "a larger one", _SHORTER if what == HOSTS_FILE else ""
        )
    return _decoded(path, data)


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = Place(str(path), line, 1).problem((), "text in UTF-8", f"the byte 0x{data[error.start]:02x}")
        raise SpecError([problem]) from error


def _refusal(path: Path, expected: str, found: str, hint: str) -> SpecError:
    return SpecError([Place(str(path)).problem((), expected, found, hint)])


def _next_step(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        near = difflib.get_close_matches(path.name, _hosts_files(path.parent), 1)
        return f"did you mean {path.with_name(near[0])}?" if near else ""
    return f"see `ls -l {shlex.quote(str(path))}`" if isinstance(error, PermissionError) else ""


def _inside(folder: Path) -> str:
    found = sorted(_hosts_files(folder), key=lambda name: (name != "hosts.yaml", name))
    return f"did you mean {folder / found[0]}?" if found else "name a file in it"


def _hosts_files(folder: Path) -> List[str]:
    try:
        with os.scandir(str(folder)) as entries:
            names = [entry.name for entry in itertools.islice(entries, LISTED)]
    except OSError:
        return []
    return [name for name in names if name.endswith((".yaml", ".yml"))]
