"""Trains what a seed draws with parameter servers, and compares it with plain TensorFlow, all in this process."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, Optional, Tuple

from tests.differential.constructions import plain
from tests.differential.constructions.functions import control_flow_of
from tests.differential.constructions.manners import Drawn
from tests.differential.ours import saved
from tests.differential.reference import Trained
from tests.differential.reused import Run
from tests.differential.verdict import DIFFERENT, Rounding, Verdict, compare, judge_end


def verdict_on(drawn: Drawn, patience_s: float) -> Verdict:
    """What comes of a seed beside plain TensorFlow; a run without an end in time is different, too."""
    if drawn.construction.must_be_refused:
        return _trained(drawn, patience_s)[0] or Verdict(DIFFERENT, "trained to the end; expected to be refused")
    try:
        expected = plain.train(drawn.reference())
    except Exception as error:
        return Verdict(DIFFERENT, f"plain TensorFlow does not train it: {type(error).__name__}: {str(error)[:300]}")
    failed, values = _trained(drawn, patience_s)
    return failed or compare(_comparable(expected, drawn), values, Rounding(drawn.way.wire))


def _trained(drawn: Drawn, patience_s: float) -> Tuple[Optional[Verdict], Dict[str, Any]]:
    """The verdict on a run that failed, else the values of its last checkpoint."""
    args, way = drawn.args(), drawn.way
    with TemporaryDirectory() as folder, control_flow_of(drawn.construction.inside):
        for last in args["legs"]:
            name = drawn.construction.as_json()
            run = Run(name, drawn.train(last), args, way.ps, way.workers, way.rewritten)
            outcomes = run.outcomes(folder, patience_s)
            if outcomes is None:
                return Verdict(DIFFERENT, f"hung: no end within {patience_s:.0f} s"), {}
            failed = judge_end(outcomes)
            if failed is not None:
                return failed, {}
        return None, saved(Path(folder))


def _comparable(expected: Trained, drawn: Drawn) -> Trained:
    """The values without a recurrent state of the model, which is as large as a copy's batch."""
    left_out = "carried" if drawn.construction.target == "state" else ""
    parts = ({name: value for name, value in part.items() if left_out not in name.split("/")} for part in expected)
    return Trained(*parts)
