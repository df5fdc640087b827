"""A run in a notebook: a bar and lines that follow the run; outside a notebook nothing is shown.

Lines for a person go to the logger ``launch``, because a library prints nothing by itself.
"""

import html
import logging
import sys
from importlib import import_module
from typing import Any, List

from launch.status.run import RunStatus
from launch.view import run_text
from launch.view.plain_view import View

LOG = logging.getLogger("launch")


def as_html(status: RunStatus) -> str:
    """Return a run as HTML: its progress bar, if the number of its steps is known, and lines about the run."""
    step = min(status.global_step or 0, status.steps or 0)
    bar = f'<progress value="{step}" max="{status.steps}" style="width: 30em"></progress>' if status.steps else ""
    return f"<div>{bar}<pre>{html.escape(chr(10).join(_lines(status)))}</pre></div>"


def _lines(status: RunStatus) -> List[str]:
    progress = [run_text.progress(status)] if status.global_step is not None else []
    cause = [f"cause: {status.cause}"] if status.cause else []
    return [run_text.head(status), *progress, run_text.count(status), *run_text.metrics(status), *cause]


class NotebookView(View):
    """A view that shows a run below the notebook cell that waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self._cell: Any = None  # of IPython, once something is shown
        self._in_notebook = _in_notebook()

    def note(self, text: str) -> None:
        """Log a line."""
        LOG.info("%s", text)

    def say(self, *lines: str) -> None:
        """Log lines."""
        for line in lines:
            self.note(line)

    def show(self, status: RunStatus) -> None:
        """Show the run, in the place where it was shown before."""
        if not self._in_notebook:
            return
        picture = import_module("IPython.display").HTML(as_html(status))
        if self._cell is None:
            self._cell = import_module("IPython.display").display(picture, display_id=True)
        else:
            self._cell.update(picture)


def _in_notebook() -> bool:
    """Return whether a kernel of Jupyter runs this process, rather than a terminal."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel")
