"""The lines that ``srun`` writes on stderr: why it started no step, and how the program of a step ended."""

import re
from typing import Optional

from launch.errors import HostProblem, ProblemKind

# "srun: error: h2: task 0: Exited with exit code 1" says less than what the program itself wrote.
_END_OF_TASK = re.compile(r"srun: error: \S+: task 0: ")
_REASON = re.compile(r"srun: (?:error|fatal): (.*)")
_OWN = "srun: "


def of_program(text: str) -> str:
    """Return what the program of a step wrote on stderr, or why there was no step; without srun's further lines."""
    lines = [line for line in text.splitlines() if not _END_OF_TASK.match(line)]
    return "\n".join(line for line in lines if not line.startswith(_OWN) or _REASON.match(line))


def problem(host: str, job: str, complaint: str) -> Optional[HostProblem]:
    """Return the problem of a host on which ``srun`` started nothing; None where it gives no reason for that."""
    reasons = [found[1] for found in map(_REASON.match, complaint.splitlines()) if found]
    if not reasons:
        return None
    what = f"srun failed there: {reasons[0]}"
    return HostProblem(host, ProblemKind.UNREACHABLE, what, advice=f"see `scontrol show job {job}`")
