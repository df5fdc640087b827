"""A process that trains what seeds draw, and answers what came of them (``tests.differential.asking``)."""

import time
from typing import Any, Dict, List, Mapping

from tests.differential.asking import answer_all
from tests.differential.constructions.manners import from_request
from tests.differential.constructions.mends import take_out
from tests.differential.constructions.runs import verdict_on

_taken_out: List[Any] = [None]


def answer(request: Mapping[str, Any]) -> Dict[str, Any]:
    """Trains it by plain TensorFlow and by this project; tells the verdict and the seconds of processor time."""
    if request.get("without") not in _taken_out:
        _taken_out.append(request["without"])
        take_out(request["without"])
    began = time.process_time()
    verdict = verdict_on(from_request(request["drawn"]), request["patience_s"])
    return {**verdict._asdict(), "cpu_s": time.process_time() - began}


if __name__ == "__main__":
    answer_all(answer)
