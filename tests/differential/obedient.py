"""A process that answers, hangs, dies or raises as it is told, for the tests of ``tests.differential.asking``."""

import os
import threading
from typing import Any, Dict, Mapping

from tests.differential.asking import answer_all


def answer(request: Mapping[str, Any]) -> Dict[str, Any]:
    """Does what ``do`` says."""
    if request["do"] == "hang":
        threading.Event().wait()
    if request["do"] == "die":
        os._exit(3)
    if request["do"] == "raise":
        raise ValueError("as told")
    if request["do"] == "print":
        print("printed as told", flush=True)
    return {"pid": os.getpid()}


if __name__ == "__main__":
    answer_all(answer)
