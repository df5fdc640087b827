"""The page is one file that loads nothing, and that no text from a host can change."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any, List, Optional, Tuple

import pytest

from launch.page.run_page import as_json, document, embedded, facts
from tests.launch.page.examples import HOSTILE, hostile, training

LOGS = {"lines": [HOSTILE], "missing": [HOSTILE]}


class Elements(HTMLParser):
    """The elements of a page in their order, and the text of each script and style."""

    def __init__(self, page: str):
        super().__init__()
        self.found: List[Tuple[str, List[Tuple[str, Optional[str]]]]] = []
        self.texts: List[Tuple[str, str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, Optional[str]]]) -> None:
        self.found.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        if self.found and data.strip():
            self.texts.append((self.found[-1][0], data))


def values_in(page: str) -> Any:
    """The values that the page's script reads."""
    return json.loads(re.findall(r'<script type="application/json" id="values">(.*?)</script>', page)[0])


def test_markup_from_hosts_adds_no_element() -> None:
    plain, bad = Elements(document(facts(training()))), Elements(document(facts(hostile()), LOGS))
    assert [tag for tag, _ in bad.found] == [tag for tag, _ in plain.found]


def test_the_values_come_back_as_they_were() -> None:
    steps = {"lines": [HOSTILE]}
    page = document(facts(hostile()), LOGS, steps=steps)
    assert values_in(page) == {"facts": facts(hostile()), "logs": LOGS, "steps": steps, "live": False}


@pytest.mark.parametrize("character", ["<", ">", "&", "\u2028", "\u2029"])
def test_no_character_that_could_end_the_values_is_in_them(character: str) -> None:
    assert character not in embedded({character: [character]})
    assert json.loads(embedded({character: [character]})) == {character: [character]}


def test_numbers_that_are_not_finite_are_null() -> None:
    assert as_json({"a": [float("nan"), 1.5, float("-inf")], "b": (1,)}) == '{"a":[null,1.5,null],"b":[1]}'


@pytest.mark.parametrize("live", [True, False])
def test_the_policy_allows_the_pages_own_style_and_script_alone(live: bool) -> None:
    page = document(facts(training()), live=live)
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[0]
    style, script = (re.findall(f"<{name}>(.*?)</{name}>", page, re.DOTALL)[0] for name in ("style", "script"))
    for name, text in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    assert f"connect-src '{'self' if live else 'none'}';" in policy


def test_the_page_loads_nothing() -> None:
    page = document(facts(training()))
    attributes = {name for _, attrs in Elements(page).found for name, _ in attrs}
    assert attributes.isdisjoint({"src", "href", "style", "onclick"})
    assert "innerHTML" not in page and "@import" not in page and "url(" not in page


def test_a_reader_without_script_finds_state_progress_and_tasks() -> None:
    page = document(facts(training()))
    quoted = re.findall(r"<noscript><pre>(.*?)</pre></noscript>", page, re.DOTALL)[0]
    assert "step 840/2000" in quoted and "worker:2@gpu000 running" in quoted


def test_a_thousand_tasks_stay_far_below_10_mb() -> None:
    logs = {"lines": ["x" * 300] * 2000, "missing": []}
    assert len(document(facts(training(1000)), logs).encode()) < 2_000_000
