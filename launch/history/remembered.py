"""Remember whether the newest run of a name that this machine began has ``--local``.

Later verbs need no flag then.

WORKDIR/local/NAME.json     {"run": RUN}, on the machine of the launcher
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Optional

from cluster.protocol.atomic_file import replace
from cluster.spec.model import Spec
from launch.agent.state.run_folder import expand


def remember(spec: Spec, run: str, local: bool) -> None:
    """Note that this machine has begun a run, on itself or on the hosts of the file."""
    path = _path(spec)
    with suppress(OSError):  # a run goes on without; the next verb has to be given --local then
        if local:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace(path, json.dumps({"run": run}))
        else:
            path.unlink()


def local_run(spec: Spec) -> Optional[str]:
    """Return the run on this machine that was begun with ``--local``, if no other was begun from here since."""
    try:
        run = json.loads(_path(spec).read_text())["run"]
        return run if (expand(spec.workdir) / "runs" / run).is_dir() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _path(spec: Spec) -> Path:
    return expand(spec.workdir) / "local" / f"{spec.name}.json"
