"""The stand-in for a runtime of containers, on a PATH of the test's own."""

import os
import shutil
import sys
from pathlib import Path
from typing import List

import pytest

from tests.support.containers import runtime


class FakeRuntime:
    """The program ``name`` of this test, and the containers that it has."""

    def __init__(self, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch):
        self._place = folder / "state"
        self._place.mkdir(parents=True)
        self.program = folder / name
        self.program.write_text(f"#!{sys.executable} -SE\n{Path(runtime.__file__).read_text()}")
        self.program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.path.dirname(shutil.which('sh') or '/bin/sh')}")

    @property
    def names(self) -> List[str]:
        """Return the names of its containers."""
        return sorted(path.name for path in self._place.iterdir())

    def pid(self, name: str) -> int:
        """Return the pid with which a container began."""
        return int((self._place / name).read_text())

    def breaks(self) -> None:
        """Let every further command fail."""
        self.program.write_text("#!/bin/sh\necho cannot reach the daemon >&2\nexit 1\n")
