"""Where Horovod is, whose ring is compared with: in an environment of its own, which few machines have."""

import os
import subprocess
from pathlib import Path
from typing import Optional

HOME = os.environ.get("RING") or str(Path(__file__).resolve().parents[3] / ".venv-ring")  # see requirements/ring.sh
PYTHON = f"{HOME}/bin/python"
_PATIENCE_S = 120.0


def missing() -> Optional[str]:
    """Return what this machine lacks for the ring, and what brings it; None where it has all."""
    try:
        argv = [PYTHON, "-W", "ignore", "-c", "import horovod.tensorflow"]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_PATIENCE_S)
    except (OSError, subprocess.SubprocessError):
        return f"expected Horovod in {HOME}, found none; run `make ring`"
    return None
