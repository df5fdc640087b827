"""Which tests were skipped and why, told once for all stages of ``make test``, with the command that adds them.

The reason of a skip is ``needs WHAT: what this machine lacks``; those of one WHAT are counted together. With
``SKIPS`` in the environment, skipped tests fail: with ``fail`` all of them, with ``fresh`` all but those that a machine
skips on which nobody installed anything.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any, Iterable, List, Mapping, Optional

from tests.support.hosts import needs

FRESH = ("fake hosts", "root", "ssh", "ssh-agent", "chromium", "slurm", "podman", "a control group of its own")
_NO_COMMAND = "No package adds them: the kernel refuses what they need; use a machine, or a privileged container."


def what(reason: str) -> str:
    """Return what a skipped test needs."""
    return reason.replace("Skipped: ", "", 1).partition(":")[0].replace("needs ", "", 1)


def reason_of(report: Any) -> str:
    """Return why a test was skipped."""
    return str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)


def unwanted(reason: str, mode: Optional[str]) -> bool:
    """Return whether this skip is a failure, where ``SKIPS`` is ``mode``."""
    return mode == "fail" or (mode == "fresh" and what(reason) not in FRESH)


def fail_unwanted(report: Any) -> None:
    """Turn a skipped report into a failed one that names the reason. Expected failures stay as they are."""
    mode = os.environ.get("SKIPS")
    if report.skipped and not hasattr(report, "wasxfail") and unwanted(reason_of(report), mode):
        report.longrepr = f"{report.nodeid}: expected to run, since SKIPS={mode}; found {reason_of(report)}"
        report.outcome = "failed"


def add_up(reports: Iterable[Any], file: Optional[str]) -> Mapping[str, int]:
    """Return how many tests of this stage and of those before it need each thing; ``file`` keeps them for the next."""
    path = Path(file) if file else None
    before = json.loads(path.read_text()) if path and path.exists() else {}
    total = Counter(before) + Counter(what(reason_of(report)) for report in reports)
    if path:
        path.write_text(json.dumps(total))
    return total


def summary(total: Mapping[str, int]) -> List[str]:
    """Return the lines that tell what was skipped; none where nothing was."""
    if not total:
        return []
    lines = [f"{count:4} {'needs' if count == 1 else 'need'} {name}" for name, count in sorted(total.items())]
    return [*lines, f"This command runs them too: {needs.command()}" if needs.command() else _NO_COMMAND]
