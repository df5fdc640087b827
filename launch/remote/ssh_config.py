"""An OpenSSH client configuration, with the files that it includes, which Paramiko leaves out."""

import glob
import os
import re
from typing import Iterator, Optional

import paramiko

DEPTH = 16  # files within files; OpenSSH's own bound
_INCLUDE = re.compile(r"\s*include[\s=]+(.+)", re.IGNORECASE)
_SECTION = re.compile(r"\s*(host|match)[\s=]", re.IGNORECASE)


def read(path: Optional[str]) -> paramiko.SSHConfig:
    """Return the configuration in a file; an empty one where there is no such file."""
    full = os.path.expanduser(path) if path else ""
    text = "\n".join(_lines(full, DEPTH)) if os.path.isfile(full) else ""
    return paramiko.SSHConfig.from_text(text)


def _lines(path: str, depth: int) -> Iterator[str]:
    """Yield a file's lines, with the lines of included files in their place.

    Each section goes on after the files that it includes.
    """
    section = "Host *"
    with open(path) as file:
        for line in map(str.rstrip, file):
            section = line if _SECTION.match(line) else section
            include = _INCLUDE.match(line)
            if include is None:
                yield line
            elif depth:
                for included in _files(include.group(1)):
                    yield from _lines(included, depth - 1)
                    yield section


def _files(patterns: str) -> Iterator[str]:
    for pattern in patterns.split():
        # Relative to ~/.ssh, wherever the file is that says it.
        where = os.path.join(os.path.expanduser("~/.ssh"), os.path.expanduser(pattern.strip('"')))
        yield from sorted(glob.glob(where))
