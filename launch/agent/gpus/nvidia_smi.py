"""The one way to ask ``nvidia-smi`` and to read its answers."""

import re
import subprocess
from typing import List

ANSWER_S = 20.0


class DriverHangs(Exception):
    """The driver has not answered in time, so nothing is known of this host's GPUs; the text has the next step."""

    def __init__(self) -> None:
        super().__init__(f"nvidia-smi: expected an answer within {ANSWER_S:.0f} s, found none; try nvidia-smi there")


def question(about: str, *fields: str) -> List[str]:
    """The argv that asks ``about`` (``gpu``, ``compute-apps``) for these fields."""
    return ["nvidia-smi", f"--query-{about}={','.join(fields)}", "--format=csv,noheader,nounits"]


def ask(argv: List[str]) -> str:
    """Return the output of ``nvidia-smi``; "" without a driver, and where it fails.

    Raises:
      DriverHangs: it gives no answer within ``ANSWER_S``.
    """
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=ANSWER_S)
    except subprocess.TimeoutExpired:
        raise DriverHangs from None
    except OSError:
        return ""
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


def rows(answer: str) -> List[List[str]]:
    """The fields of every line; ``[N/A]`` stands for one that is not known."""
    return [line.split(", ") for line in answer.splitlines()]


def list_gpus() -> List[str]:
    """Return the UUIDs of this host's NVIDIA GPUs, by index; none where there is no driver. Raises DriverHangs."""
    # GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5f3c…); the parts of a divided GPU are indented below it
    return re.findall(r"^GPU \d+: .*\(UUID: ([^)]+)\)", ask(["nvidia-smi", "-L"]), re.MULTILINE)
