"""Size and first paint of the page of a run, with many tasks, in Chromium: python -m tests.benchmarks.page

Each page is as full as it gets: 2,000 lines of logs of 300 characters, and a curve of 512 points. It is opened from
a file, each time in a new tab. A redraw is what a live page does once a second, and a click on a column.
"""

import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import List, Sequence

from launch.page.run_page import LONGEST, MOST_LINES, document, facts
from launch.status.run import RunStatus
from launch.status.run_history import MOST
from tests.launch.page.examples import training
from tests.support.browser import Browser
from tests.support.launch.statuses import history
from tests.support.waiting import eventually

TASKS = (10, 100, 1000, 10000)
TIMES = 5
LOGS = {"lines": [f"worker:{n}@gpu01 ".ljust(LONGEST, "x") for n in range(MOST_LINES)], "missing": []}
CURVE = [(step, 2.3 * 0.995**step + 0.1) for step in range(MOST)]
# The moment after the first frame that has the table. Chromium's own first paint may have the heading alone.
WATCH = """
addEventListener("DOMContentLoaded", () => requestAnimationFrame(() => setTimeout(() => {
  window.painted = document.querySelector("tbody tr") ? performance.now() : NaN;
})))
"""
REDRAW = """
(() => {
  const began = performance.now();
  document.querySelector("th button").click();
  document.body.offsetHeight;  // the layout, too
  return performance.now() - began;
})()
"""


def measured(browser: Browser, url: str) -> List[float]:
    """Return the milliseconds until the first paint of a page with its table, and those of a redraw."""
    page = browser.page(1280, 900)
    page.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
    page.open(url)
    times = [eventually("a paint", lambda: page.evaluate("window.painted")), page.evaluate(REDRAW)]
    page.close()
    return times


def spread(times: Sequence[float]) -> str:
    return " / ".join(f"{time:.0f}" for time in (min(times), statistics.median(times), max(times)))


def run(tasks: int) -> RunStatus:
    """A run of so many tasks, one of them a ps, with the longest curve."""
    return replace(training(tasks - 1), history=history(CURVE))


def main() -> None:
    """Print a row for each number of tasks."""
    print("| tasks | size | first paint, ms: least / median / most | redraw, ms: least / median / most |")
    print("|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder) / "browser") as browser:
        for tasks in TASKS:
            file = Path(folder) / "run.html"
            file.write_text(document(facts(run(tasks)), LOGS), encoding="utf-8")  # and a ps
            paints, redraws = zip(*(measured(browser, file.as_uri()) for _ in range(TIMES)))
            size = file.stat().st_size / 1e6
            print(f"| {tasks:,} | {size:.1f} MB | {spread(paints)} | {spread(redraws)} |", flush=True)


if __name__ == "__main__":
    main()
