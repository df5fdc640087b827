"""The page of a run in Chromium: what a reader sees, reaches with the keyboard, and what no host can make of it.

One browser serves all tests.
"""

import json
import os
import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

import pytest

from launch.page.run_page import document, facts
from launch.status.run_history import RunHistory
from launch.timeline.drawing import drawn
from tests.launch.monitoring.web import served
from tests.launch.page.examples import HOSTILE, hostile, training
from tests.launch.timeline.simulated import Recording
from tests.support import browser as support
from tests.support.browser import Browser, Page
from tests.support.launch.jobs import CALM
from tests.support.launch.launcher import Launcher
from tests.support.launch.statuses import history
from tests.support.waiting import eventually

LOGS = {"lines": [HOSTILE, "worker:0@gpu01 step 840"], "missing": [HOSTILE]}
FOCUSED = "document.activeElement.dataset.key"
FIRST_NAME = "document.querySelector('tbody td').textContent"
# The labels of the vertical axis: each with its left edge and its height in the picture.
LABELS = """
[...document.querySelectorAll("svg[aria-label='loss by step'] text[text-anchor=end]")].slice(0, -1)
  .map((each) => [each.textContent, each.getBBox().x, each.getBBox().y])
"""
CURVES = "document.querySelectorAll('.curve').length"
SUMMARIES = "[...document.querySelectorAll('summary')].map((each) => each.innerText)"
ROWS = "[...document.querySelectorAll('tr')].map((row) => [...row.cells].map((cell) => cell.innerText))"
# Each row of the drawing of steps: its name, and the class of its last bar.
STEPS = """
[...document.querySelectorAll("svg[aria-label^='steps of'] text[text-anchor=end]")].slice(0, -1).map((name) => {
  let bar = name;
  while (bar.nextSibling && bar.nextSibling.tagName === "rect") bar = bar.nextSibling;
  return [name.textContent, bar.getAttribute("class")];
})
"""
WORKERS = ["worker:0", "worker:1"]
BARS = "document.querySelectorAll(\"svg[aria-label^='steps of'] rect\").length"
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


def opened(
    browser: Browser,
    folder: Path,
    status: Any,
    width: int = 1200,
    curve: Optional[RunHistory] = None,
    steps: Any = None,
) -> Page:
    """The report of a status."""
    file = folder / "run.html"
    shown = status if curve is None else replace(status, history=curve)
    file.write_text(document(facts(shown), LOGS, steps=steps))
    page = browser.page(width)
    page.open(file.as_uri())
    return page


def test_a_report_loads_nothing_complains_of_nothing_and_runs_no_other_script(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, training())
    assert "840/2000" in text(page) and "worker:2" in text(page, "table")
    assert page.requested() == [(tmp_path / "run.html").as_uri()] and page.complaints() == []
    assert page.evaluate(INTRUDES) is False
    assert "Content Security Policy" in str(page.complaints())


def test_the_steps_of_all_tasks_are_drawn_and_the_keyboard_chooses_the_window(browser: Browser, tmp_path: Path) -> None:
    recording = Recording([0.0, 50.0]).take(200)
    recording.now += 9
    recording.sign(0, "step", 9.0, owes=False)
    recording.sign(1, "step", 9.0, owes=True)
    page = opened(browser, tmp_path, training(), 390, steps=drawn(recording.line()))
    assert "worker:0@gpu0 waits for worker:1@gpu1" in text(page) and page.complaints() == []
    assert page.evaluate(STEPS) == [["worker:0", "wait"], ["worker:1", "blocks"]]
    newest, fits = page.evaluate(BARS), page.evaluate(FITS)
    page.evaluate("document.querySelector(\"[data-key='steps all']\").focus()")
    page.press("Enter")
    eventually("the other window", lambda: page.evaluate(BARS) > 2 * newest)
    assert fits and page.evaluate(FOCUSED) == "steps all"


def test_names_and_lines_of_steps_are_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    row = {"name": HOSTILE, "host": HOSTILE, "none": None, "pieces": [[9.0, 9.0, HOSTILE, 1, 1, None]]}
    window = {"seconds": 9.0, "rows": [row]}
    page = opened(
        browser, tmp_path, training(), steps={"lines": [HOSTILE], "windows": {"newest": window, "all": window}}
    )
    assert text(page).replace("\u2028", " ").count(HOSTILE.replace("\u2028", " ")) >= 2
    assert page.evaluate("document.querySelectorAll('img').length") == 0 and page.complaints() == []


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


@pytest.mark.parametrize(
    "points, labels",
    [
        ([(1, 2.3), (840, 0.4285)], ["0.4285", "2.3"]),
        ([(1, 2.271), (2, 0.02), (1017, 0.0002414)], ["2.4e-4", "0.001", "0.01", "0.1", "2.271"]),
        ([(1, 123456.0), (2, 0.0)], ["0", "123500"]),  # zero has no logarithm
        ([(1, 4e30), (2, 1.0)], ["1", "10000", "1e+10", "1e+16", "1e+22", "4e+30"]),
        ([(1, 0.5), (2, 0.5)], ["0.5", "0.5"]),
    ],
)  # fmt: skip
def test_the_scale_of_a_loss_fits_its_values(browser: Browser, tmp_path: Path, points: Any, labels: Any) -> None:
    page = opened(browser, tmp_path, training(), curve=history(points))
    drawn = page.evaluate(LABELS)
    assert [label for label, _, _ in drawn] == labels
    assert all(left >= 0 for _, left, _ in drawn)  # nothing is cut
    heights = [height for _, _, height in drawn]
    assert heights == sorted(heights, reverse=True)
    assert ("logarithmic" in text(page)) == (len(labels) > 2)


@pytest.fixture
def trains(launch: Launcher) -> Iterator[Launcher]:
    """A run on this machine that trains, without an end."""
    (launch.file.parent / "calm.py").write_text(CALM)
    values = {
        "name": "calm", "job": "calm.py", "workdir": str(launch.workdir), "restart": {"max": 3, "backoff_s": 0.1},
        "cluster": {"ps": ["cpu01"], "worker": ["gpu01", "gpu02"]}, "train": {"steps": 1000000, "batch_size": 2},
    }  # fmt: skip
    launch.file.write_text(json.dumps(values))
    try:
        began = launch("up", "--local", "-d")
        assert began.returncode == 0, began.stderr
        yield launch
    finally:
        launch("down")


def step(page: Page) -> int:
    """The step that the page shows."""
    return int(re.findall(r"\d+", text(page, ".numbers"))[0])


def row(page: Page, task: str) -> Dict[str, str]:
    """A task's cells by the titles of their columns."""
    titles, *rows = page.evaluate(ROWS)
    return next(dict(zip(titles, cells)) for cells in rows if cells[0] == task)


def kill(launch: Launcher, name: str) -> None:
    """Kill a worker, as the kernel would."""
    tasks = json.loads(launch("status", "--json").stdout)["tasks"]
    os.kill(next(each["pid"] for each in tasks if f"{each['role']}:{each['index']}" == name), signal.SIGKILL)


def test_a_live_page_follows_training_a_killed_worker_and_the_end(browser: Browser, trains: Launcher) -> None:
    page = browser.page()
    with served(trains.begin("view")) as url:
        page.open(url)
        eventually("a step", lambda: step(page) > 0)
        first = step(page)
        eventually("a further step and a curve", lambda: step(page) > first and page.evaluate(CURVES))
        eventually("lines of the logs", lambda: "worker:1@gpu02 " in text(page, "pre#lines"))
        eventually("the steps of both workers", lambda: [name for name, _ in page.evaluate(STEPS)] == WORKERS)
        assert "restarts" not in row(page, "worker:1")  # no empty column
        kill(trains, "worker:1")
        eventually("the incident", lambda: any("worker:1@gpu02" in each for each in page.evaluate(SUMMARIES)))
        eventually("the restart", lambda: row(page, "worker:1").get("restarts") == "1")
        assert trains("down").returncode == 0
        eventually("the end", lambda: "stopped" in text(page, "h1"))
        assert page.complaints() == [] and all(each.startswith(url) for each in page.requested())
    eventually("the end of the server", lambda: "has ended; the page shows the last values" in text(page, "#problem"))
