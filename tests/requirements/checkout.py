"""A checkout with ``requirements/bootstrap.sh`` in it, on a machine whose Pythons are stubs.

A stub is a shell script that answers what the script asks of a Python, and writes each pip call into ``calls``.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Dict, List, Optional

from tests.support import ROOT

TOOLS = ["sh", "awk", "cat", "cksum", "cmp", "cp", "dirname", "env", "grep"]
TOOLS += ["mkdir", "rm", "rmdir", "sed", "tail", "touch", "uname"]

PYTHON = """#!/bin/sh
case "$*" in
-V) echo "Python {version}.9" ;;
"-I -c"*ensurepip*) [ "{version}" = "$4" ] && echo "$0" ;;
*sys.version*) echo "{version}.9" ;;
"-m venv "*) mkdir -p "$4/bin" && cp "$0" "$4/bin/python" && touch "$4/pyvenv.cfg" ;;
"-m pip "*)
    echo "$*" >>"{calls}"
    case "$*" in */dev/stdin) cat >>"{calls}" ;; esac
    {pip} ;;
*"import tensorflow"*) echo "compiled, bytecode ${{PYTHONDONTWRITEBYTECODE-written}}" >>"{calls}" ;;
esac
"""

UV = """#!/bin/sh
echo "uv $*" >>"{calls}"
case "$1 $2" in
"python find") cat "{folder}/installed" ;;
"python install") {install} ;;
esac
"""

DF = """#!/bin/sh
echo "Filesystem 1024-blocks Used Available Capacity Mounted on"
echo "/dev/vda 9999999 1 $(({mib} * 1024)) 50% /"
"""

LOCK = """\
numpy==1.19.5 \\
    --hash=sha256:aa
pip==24.0 \\
    --hash=sha256:bb \\
    --hash=sha256:cc
    # via -r tf1.in
setuptools==68.0.0 \\
    --hash=sha256:dd
"""


class Checkout:
    """A folder with the script and small lock files, and a PATH on which only the stubs are Pythons."""

    def __init__(self, folder: Path):
        self.root, self.bin, self.home = folder / "a checkout", folder / "bin", folder / "home"
        self.calls_file = folder / "calls"
        self.venv = self.root / ".venv"
        for made in (self.root / "requirements", self.bin, self.home):
            made.mkdir(parents=True)
        shutil.copy(str(ROOT / "requirements" / "bootstrap.sh"), str(self.root / "requirements"))
        for lock in ("tf1", "test-tf1", "plots-tf1", "tf2", "test-tf2", "plots-tf2"):
            (self.root / "requirements" / f"{lock}.lock").write_text(LOCK)
        self.script(self.bin / "df", DF.format(mib=5000))
        for tool in TOOLS:
            (self.bin / tool).symlink_to(str(shutil.which(tool)))

    def script(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def python(self, version: str, folder: Optional[Path] = None, pip: str = ":") -> Path:
        text = PYTHON.format(version=version, calls=self.calls_file, pip=pip)
        return self.script((folder or self.bin) / f"python{version}", text)

    def run(self, which: str = "run", **env: str) -> "subprocess.CompletedProcess[str]":
        environ: Dict[str, str] = {"PATH": str(self.bin), "HOME": str(self.home), **env}
        command = [str(self.root / "requirements" / "bootstrap.sh"), which]
        return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120)

    def built(self, which: str = "run", **env: str) -> List[str]:
        """Runs the script, which must succeed, and returns the calls of pip and uv that it made."""
        self.calls_file.write_text("")
        done = self.run(which, **env)
        assert (done.returncode, done.stderr) == (0, "")
        return [line for line in self.calls_file.read_text().splitlines() if line[:2] in ("-m", "uv")]

    def refused(self, which: str = "run", **env: str) -> str:
        """Runs the script, which must fail with one sentence, and returns the sentence."""
        done = self.run(which, **env)
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1 and done.stderr.endswith(".\n")
        return done.stderr


def locks(calls: List[str]) -> List[str]:
    """The lock files that pip was given, in their order."""
    return [Path(call.split("--requirement ")[1]).name for call in calls if "--requirement" in call]
