"""The page of a run in Chromium: what a reader sees, reaches with the keyboard, and what no host can make of it.

One browser serves all tests.
"""

from pathlib import Path
from typing import Any, Iterator

import pytest

from launch.page.document import document
from launch.page.facts import facts
from tests.launch.page.examples import HOSTILE, hostile, training
from tests.support import browser as support
from tests.support.browser import Browser, Page

LOGS = {"lines": [HOSTILE, "worker:0@gpu01 step 840"], "missing": [HOSTILE]}
FOCUSED = "document.activeElement.dataset.key"
FIRST_NAME = "document.querySelector('tbody td').textContent"
FITS = "document.documentElement.scrollWidth <= innerWidth"
# Whether something ran, or was fetched, that the page's policy does not name.
INTRUDES = """
(async () => {
  const script = document.createElement("script");
  script.textContent = "document.title = 'owned'";
  document.body.append(script);
  const fetched = await fetch("https://example.org/").then(() => true, () => false);
  return document.title === "owned" || fetched;
})()
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    support.skip_without()
    with Browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


def text(page: Page, of: str = "body") -> str:
    found: str = page.evaluate(f"document.querySelector('{of}').innerText")
    return found


def opened(browser: Browser, folder: Path, status: Any, width: int = 1200) -> Page:
    """The report of a status."""
    file = folder / "run.html"
    file.write_text(document(facts(status), LOGS))
    page = browser.page(width)
    page.open(file.as_uri())
    return page


def test_a_report_loads_nothing_complains_of_nothing_and_runs_no_other_script(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, training())
    assert "840/2000" in text(page) and "worker:2" in text(page, "table")
    assert page.requested() == [(tmp_path / "run.html").as_uri()] and page.complaints() == []
    assert page.evaluate(INTRUDES) is False
    assert "Content Security Policy" in str(page.complaints())


def test_markup_from_hosts_is_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, hostile())
    shown = HOSTILE.replace("\u2028", " ")
    page.evaluate("document.querySelector('details').open = true")
    for part in ("h1", ".cause", "table", "details", "pre#lines"):
        assert shown in text(page, part).replace("\u2028", " "), part
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert "owned'" in page.evaluate("document.title") and page.complaints() == []  # as text, too


def test_a_thousand_tasks_are_sorted_by_the_keyboard_and_fit_a_narrow_window(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, training(1000), width=390)
    assert page.evaluate("document.querySelectorAll('tbody tr').length") == 1001
    assert page.evaluate(FITS)
    for _ in range(20):
        page.press("Tab")
        if page.evaluate(FOCUSED) == "by name":
            break
    page.press("Enter", times=2)
    assert page.evaluate(FIRST_NAME) == "worker:999"
    assert page.evaluate(FOCUSED) == "by name"  # though the table was drawn again
