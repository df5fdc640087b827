"""Every row has a mend that can be taken out: `--without all` shows that seeds differ then."""

import pytest

from tests.differential.constructions.mends import MENDS
from tests.differential.constructions.rows import ROWS

# Of these, refusals are the mend, or the promise is a crash that is none.
_WITHOUT = {"S7 on a part", "S9 resumed", "own collection", *(name for name in ROWS if name.startswith("crash"))}


def test_every_row_has_a_mend_to_take_out() -> None:
    assert {row for mend in MENDS.values() for row in mend.rows} == {*ROWS} - _WITHOUT


@pytest.mark.parametrize("name", MENDS)
def test_what_a_mend_replaces_is_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MENDS[name].take_out(monkeypatch.setattr)
