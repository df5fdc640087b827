"""What a test tells of the cases that it tried."""

from pathlib import Path
from typing import List, Sequence

from tests.differential.carrying_out import Bench
from tests.differential.verdict import DIFFERENT
from tests.differential.ways import Case


def differences(cases: Sequence[Case], folder: Path) -> List[str]:
    """A line for each case that differs."""
    results = Bench(folder).carry_out(cases)
    return [f"{each.case}: {each.verdict.text}" for each in results if each.verdict.kind == DIFFERENT]
