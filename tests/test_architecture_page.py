"""docs/architecture.md names files that exist, every package, and as few files on a value's way as it says.

Decisions have their status and date.
"""

import re
from typing import List

from tests.support import ROOT
from tests.test_architecture import FLOORS

PAGE = (ROOT / "docs" / "architecture.md").read_text()
PATH = re.compile(r"`((?:cluster|launch|jobs|tests)/[\w/.]*)`")


def section(title: str) -> str:
    """The text below a heading, up to the next one."""
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(text: str) -> List[List[str]]:
    """The cells of a table, without its head."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")][1:]


def test_every_file_that_the_page_names_exists() -> None:
    named = PATH.findall(PAGE)
    assert len(named) > 80
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_each_column_has_the_packages_of_its_house_floor_by_floor() -> None:
    for column, house in enumerate(("cluster", "launch.agent", "launch")):
        cells = [re.findall(r"`(\w+)`", row[column]) for row in rows(section("Packages"))]
        assert [sorted(cell) for cell in cells if cell] == [sorted(rooms) for rooms in FLOORS[house]]


def test_a_value_passes_through_at_most_sixteen_files_and_two_encodings() -> None:
    way = rows(section("The way of a value"))
    assert len(way) <= 16
    assert sum("encoding**" in row[1] for row in way) == 2


def test_a_key_of_hosts_passes_through_at_most_four_files() -> None:
    assert len(rows(section("The way of a feature"))) <= 4


def test_each_question_has_a_file_and_a_test() -> None:
    answered = rows(section("Questions"))
    assert len(answered) > 20
    for _, where, held in answered:
        assert PATH.search(where)
        assert all(path.startswith("tests/") for path in PATH.findall(held)) and PATH.search(held)


def test_a_decision_has_its_status_and_its_date() -> None:
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    status = re.compile(r"\n\n(?:Accepted|Replaced by decision \d+), 20\d\d-\d\d-\d\d\.\n\n")
    assert [path.name for path in decisions if not status.search(path.read_text()[:300])] == []
