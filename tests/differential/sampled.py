"""Cases tried in this very process, which takes less time than processes of their own."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import List, Sequence

from tests.differential import reference
from tests.differential.ours import saved
from tests.differential.reused import Run
from tests.differential.verdict import DIFFERENT, Rounding, Verdict, compare, judge_end
from tests.differential.ways import Case
from tests.support.waiting import PATIENCE_S


def differences(cases: Sequence[Case]) -> List[str]:
    """A line for each case that differs."""
    found = [(case, verdict_on(case)) for case in cases]
    return [f"{case}: {verdict.text}" for case, verdict in found if verdict.kind == DIFFERENT]


def verdict_on(case: Case) -> Verdict:
    """What comes of a case beside plain TensorFlow; a run without an end in time is different, too."""
    asked, rounding = case.reference(), Rounding(case.way.wire, case.author.half)
    expected = reference.train(case.author, asked["args"], asked["batch"], asked["clip_norm"], rounding.of_wire)
    if not reference.moved(expected):
        return Verdict(DIFFERENT, "nothing moves, so nothing is compared")
    run = Run(case.author.name, case.train(), case.args(), case.way.ps, case.workers, case.rewritten)
    with TemporaryDirectory() as folder:
        outcomes = run.outcomes(folder, PATIENCE_S)
        if outcomes is None:
            return Verdict(DIFFERENT, f"hung: no end within {PATIENCE_S:.0f} s")
        return judge_end(outcomes) or compare(expected, saved(Path(folder)), rounding)
