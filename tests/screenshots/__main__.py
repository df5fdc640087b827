"""Takes pictures of the page of a real run: ``python -m tests.screenshots docs/pictures``. Needs Chromium."""

import argparse
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Dict

from tests.launch.monitoring.web import served
from tests.screenshots.png import pixels, with_palette
from tests.support.browser import Browser, Page
from tests.support.launch.launcher import Launcher, finish
from tests.support.waiting import eventually

STEPS = 5000
WIDTH, TALLEST = 1280, 1800
HEADING = "document.querySelector('h1').innerText"
STEP = "parseInt(document.querySelector('.numbers b').innerText)"
# Each stage of the run, with what the page shows then. The worker is killed before the fault.
STAGES: Dict[str, str] = {
    "start": f"{HEADING}.includes('starting') && document.body.innerText.includes('starting:')",
    "training": f"{STEP} >= {STEPS // 3}",
    "fault": "document.querySelector('details')?.innerText.includes('training again after')",
    "end": f"{HEADING}.includes('succeeded')",
}
DARK = "training"  # of this stage there is a dark picture, too
OPEN = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"


def prepare(folder: Path) -> Launcher:
    """Write the hosts file of a run of digits on three named hosts."""
    launch = Launcher(folder)
    values = {
        "name": "digits", "job": "digits", "args": {"learning_rate": 0.0002},
        "workdir": str(launch.workdir), "restart": {"max": 3, "backoff_s": 1},
        "cluster": {"ps": ["cpu01"], "worker": ["gpu01", "gpu02"]},
        "train": {"steps": STEPS, "batch_size": 64, "towers": 1, "checkpoint": {"every_s": 5}},
    }  # fmt: skip
    launch.file.write_text(json.dumps(values))
    return launch


def kill_a_worker(launch: Launcher) -> None:
    """Kill worker:1, as the kernel would."""
    tasks = json.loads(launch("status", "--json").stdout)["tasks"]
    os.kill(next(task["pid"] for task in tasks if (task["role"], task["index"]) == ("worker", 1)), signal.SIGKILL)


def take(page: Page, empty: Page, file: Path, scheme: str = "light") -> None:
    """Take a picture of the page, as tall as it is, with its incidents open."""
    page.prefer(scheme)
    page.evaluate(OPEN)
    page.resize(WIDTH, min(TALLEST, page.evaluate("document.body.scrollHeight")))
    file.write_bytes(with_palette(pixels(empty, page.picture())))
    page.resize(WIDTH, TALLEST)
    print(f"{file}: {file.stat().st_size / 1000:.0f} kB", file=sys.stderr)


def follow(launch: Launcher, page: Page, empty: Page, folder: Path) -> None:
    """Take the picture of each stage, once the page shows it."""
    for stage, shown in STAGES.items():
        if stage == "fault":
            kill_a_worker(launch)
        eventually(f"{stage}: {shown}", lambda shown=shown: page.evaluate(shown))  # type: ignore[misc]
        take(page, empty, folder / f"page-{stage}.png")
        if stage == DARK:
            take(page, empty, folder / f"page-{stage}-dark.png", "dark")


def main() -> None:
    """Parse the command line and take the pictures."""
    parser = argparse.ArgumentParser(prog="python -m tests.screenshots", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures are written")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, Browser(Path(scratch) / "browser") as browser:
        launch = prepare(Path(scratch))
        up = launch.begin("up", "--local")
        try:
            eventually("a run", lambda: launch("status", "--json").returncode == 0)
            with served(launch.begin("view")) as url:
                page = browser.page(WIDTH, TALLEST)
                page.open(url)
                follow(launch, page, browser.page(), folder)
        finally:
            launch("down")
            finish(up)


if __name__ == "__main__":
    main()
