"""The one way to ask ``nvidia-smi`` and to read its answers."""

import re
import subprocess
from typing import List

ANSWER_S = 20.0


def question(about: str, *fields: str) -> List[str]:
    """The argv that asks ``about`` (``gpu``, ``compute-apps``) for these fields."""
    return ["nvidia-smi", f"--query-{about}={','.join(fields)}", "--format=csv,noheader,nounits"]


def ask(argv: List[str]) -> str:
    """Return the output of ``nvidia-smi``; "" without a driver, and where it fails or hangs."""
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=ANSWER_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


def rows(answer: str) -> List[List[str]]:
    """The fields of every line; ``[N/A]`` stands for one that is not known."""
    return [line.split(", ") for line in answer.splitlines()]


def list_gpus() -> List[str]:
    """The UUIDs of this host's NVIDIA GPUs, by index; none where there is no driver."""
    # GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5f3c…); the parts of a divided GPU are indented below it
    return re.findall(r"^GPU \d+: .*\(UUID: ([^)]+)\)", ask(["nvidia-smi", "-L"]), re.MULTILINE)
