"""Programs in the place of ``srun``, and the environment of a job in which they are found."""

import shlex
import sys
from pathlib import Path
from typing import Dict

from tests.support import ROOT

STAND_IN = f'exec {shlex.quote(sys.executable)} -S {shlex.quote(str(ROOT / "tests/support/slurm/stand_in.py"))} "$@"'


def job_with(folder: Path, script: str = STAND_IN) -> Dict[str, str]:
    """The variables of a job whose nodes are h1 and h2, where ``srun`` is a shell script."""
    program = folder / "bin" / "srun"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h[1-2]", "PATH": f"{program.parent}:/usr/bin:/bin"}
