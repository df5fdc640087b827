"""The file of results: a JSON list with an object for each measurement, a line each."""

import json
import subprocess
from pathlib import Path
from typing import List

from tests.benchmarks.speed.report import Result


def read(path: Path) -> List[Result]:
    """The measurements of a file; none where there is no file."""
    found: List[Result] = json.loads(path.read_text()) if path.exists() else []
    return found


def add(path: Path, measured: Result) -> None:
    """Adds one measurement."""
    lines = ",\n".join(json.dumps(each) for each in [*read(path), measured])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"[\n{lines}\n]\n")


def commit(root: Path) -> str:
    """Return the commit of the code below ``root``, with ``+`` where a file of it was changed since; "" without git."""
    said = [["rev-parse", "--short=8", "HEAD"], ["status", "--porcelain", "--untracked-files=no"]]
    try:
        name, changed = (subprocess.check_output(["git", "-C", str(root), *each], text=True).strip() for each in said)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{name}+" if changed else name
