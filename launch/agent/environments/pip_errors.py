"""Translate pip's output into words: its stage, and the reason of its failure."""

import re
from typing import Iterable, Optional

_STAGES = (
    (re.compile(r"^Collecting ([A-Za-z0-9._-]+)"), "fetching {}"),
    (re.compile(r"^Building wheels? for collected packages: (.*)"), "building {}"),
    (re.compile(r"^Installing collected packages: (.*)"), "installing {}"),
)
_UNREACHABLE = (
    "connection broken",
    "NewConnectionError",
    "ConnectTimeout",
    "ReadTimeout",
    "ProxyError",
    "SSLError",
    "MaxRetryError",
)
_ADDRESS = re.compile(r"host='([^']+)', port=(\d+)")
_LACKING = re.compile(r"No module named '?(ensurepip|venv)\b")
_NO_MATCH = re.compile(r"No matching distribution found for ([^\s;(]+)")
_WRONG_HASH = re.compile(r"^\s+([A-Za-z0-9._-]+==\S+) from (\S+)", re.MULTILINE)


def stage(lines: Iterable[str]) -> Optional[str]:
    """Return pip's stage, from the newest of ``lines`` that shows one: ``fetching numpy``."""
    for line in reversed(list(lines)):
        for pattern, words in _STAGES:
            found = pattern.match(line.strip())
            if found:
                return words.format(_shortly(found.group(1)))
    return None


def _shortly(names: str) -> str:
    listed = names.split(", ")
    return listed[0] if len(listed) == 1 else f"{len(listed)} packages"


def explain(output: str, log: str, python: str, free_mib: int, index: str = "") -> str:
    """Return why a build failed, and what to do next.

    Args:
      output: the output of the build's last step; ``log`` is the path of the whole output.
      free_mib: of the disk, before the failed build was removed; a full disk may keep pip from printing the error.
      python: the interpreter the environment is built on, as ``3.7``.
      index: the host of the package index, where it is known.
    """
    if "No space left on device" in output or "Disk quota exceeded" in output or free_mib == 0:
        return f"the disk is full ({free_mib} MB are free); free some space, or move workdir to a larger disk"
    lacking = _LACKING.search(output)
    if lacking:
        return (
            f"Python {python} has no {lacking.group(1)}, which makes environments; install it (Debian: apt install "
            f"python{python}-venv), or name another Python with the key python"
        )
    missing = _NO_MATCH.search(output)
    if missing and not any(word in output for word in _UNREACHABLE):
        return (
            f"no file of {missing.group(1)} suits Python {python} here; add one to the wheel folder or the index, "
            f"or name another Python with the key python (pip's output: {log})"
        )
    if any(word in output for word in _UNREACHABLE):
        return (
            f"the package index {index or _address(output)} cannot be reached from there; name one that can in "
            f"setup.index_url, or send the wheels from here: launch setup --wheels DIR (pip's output: {log})"
        )
    if "DO NOT MATCH THE HASHES" in output:
        wrong = _WRONG_HASH.search(output)
        what = wrong.group(1) if wrong else "a package"
        return f"the index has another file of {what} than the lock names; write the lock again (pip's output: {log})"
    printed = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in printed if line.startswith("ERROR:")]
    return f"{(errors or printed or ['no reason given'])[-1]}; correct that and retry (the whole output: {log})"


def _address(output: str) -> str:
    found = _ADDRESS.search(output)
    return f"{found.group(1)}:{found.group(2)}" if found else "that pip is set up with"
