"""Mutants are what they say: each mend is taken out once, drawn ones are the same each time, and some are found."""

import ast
from typing import Any, Dict

import pytest

from tests.simulation.mutants import drawn
from tests.simulation.mutants.hunt import Histories
from tests.simulation.mutants.keepers import KEEPERS
from tests.simulation.mutants.launchers import LAUNCHERS
from tests.simulation.mutants.mutant import ROOT, Edit, Mutant
from tests.simulation.mutants.reached import MARKS, marked, statements, touches
from tests.simulation.mutants.reverts import REVERTS

pytestmark = pytest.mark.not_fast  # processes
QUICK = (  # of which the known history is short
    "fence", "ps first", "first word", "watching renews", "members unasked", *(each.name for each in KEEPERS),
)  # fmt: skip
MENDS = REVERTS + KEEPERS + LAUNCHERS
_FOUND = {mutant.name: mutant for mutant in MENDS}
_TEXT = """def one(x):
    if x:
        return 1
    two(x,
        3)
    return 2
LIMIT = 3
"""


@pytest.mark.parametrize("mutant", MENDS, ids=lambda mutant: mutant.name)
def test_a_mend_is_in_the_product_and_can_be_taken_out(mutant: Mutant) -> None:
    texts = mutant.sources()
    assert texts and mutant.name in _FOUND and len(_FOUND) == len(MENDS)
    for text in texts.values():
        ast.parse(text)


@pytest.mark.parametrize("name", QUICK)
def test_a_mend_that_is_taken_out_is_missed(name: str) -> None:
    mutant = _FOUND[name]
    assert mutant.known is not None
    with Histories(mutant.sources()) as histories:
        assert histories.run(mutant.known[0], 300.0, mutant.known[1])["kind"] is not None


def test_a_text_that_is_there_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="expected once, found"):
        Mutant("many", "", (Edit("launch/agent/service/member.py", "self", "me"),)).sources()


def test_a_mutant_that_cannot_be_imported_is_stillborn() -> None:
    with Histories({"launch.agent.service.member": "1 / 0"}) as histories:
        assert histories.run(0, 60.0)["kind"] == "stillborn"


def test_a_history_has_the_lines_that_it_reached() -> None:
    with Histories({}, lines=True) as histories:
        history = histories.run(3, 300.0)
    member = "launch/agent/service/member.py"
    within = [
        line for line, text in enumerate((ROOT / member).read_text().splitlines(), 1) if "self._obeyed.add" in text
    ]
    assert history["kind"] is None and set(within) <= set(history["lines"][member])


def test_a_drawn_mutant_is_the_same_for_the_same_number() -> None:
    mutants = [drawn.draw(number) for number in range(40)]
    assert mutants == [drawn.draw(number) for number in range(40)]
    assert len({mutant.edits for mutant in mutants}) > 30
    assert drawn.draw(0, again=1) != mutants[0]


def test_drawn_mutants_are_programs_and_differ_from_the_product() -> None:
    for number in range(60):
        mutant = drawn.draw(number)
        (edit,) = mutant.edits
        for text in mutant.sources().values():
            assert ast.dump(ast.parse(text)) != ast.dump(ast.parse((ROOT / edit.path).read_text())), mutant.what


def test_statements_of_functions_are_known_by_their_lines() -> None:
    assert statements(_TEXT, 3, 3) == {3}
    assert statements(_TEXT, 4, 6) == {4, 6}
    assert statements(_TEXT, 7, 7) is None and statements(_TEXT, 1, 1) is None


def test_a_marked_module_notes_what_it_reaches() -> None:
    names: Dict[str, Any] = {MARKS: set(), "two": lambda *args: None}
    exec(marked(_TEXT, "text.py"), names)
    assert names["one"](0) == 2 and names[MARKS] == {2, 4, 6}
    assert touches({"text.py": {3}}, {"text.py": [2, 4, 6]}) is False
    assert touches({"text.py": {4}}, {"text.py": [2, 4, 6]}) and touches(None, {})
