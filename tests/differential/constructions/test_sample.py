"""A sample of `make nightly`, on this process's runtime, as threads of this process: a seed for each row.

Each shows a kind of construction that once trained to another result without a word.
"""

from typing import Dict

import pytest

from tests.differential.carrying_out import RUNTIME
from tests.differential.constructions.drawing import all_of
from tests.differential.constructions.rows import ROWS, rows_of, sample
from tests.differential.constructions.runs import verdict_on
from tests.differential.verdict import DIFFERENT
from tests.support.waiting import PATIENCE_S

CHOSEN = sample([each for each in all_of(range(1000), {}) if each.way.runtime == RUNTIME])


def test_the_sample_meets_every_row() -> None:
    mine = {name for name, row in ROWS.items() if RUNTIME in row.way.get("runtime", [RUNTIME])}
    assert {row for each in CHOSEN for row in rows_of(each)} == mine


@pytest.mark.timeout(900)  # on a machine that others use
def test_a_sample_of_constructions_trains_as_in_one_process_or_is_refused() -> None:
    found: Dict[str, str] = {}
    for each in CHOSEN:
        verdict = verdict_on(each, PATIENCE_S)
        if verdict.kind == DIFFERENT:
            found[str(each)] = verdict.text
    assert not found
