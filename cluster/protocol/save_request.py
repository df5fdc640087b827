"""Ask the chief for a checkpoint, by a number in a file of its task's folder.

The chief reads the file between steps. The second word in the file is the manner of the save:

    now   the chief saves before its next step
    hold  the chief saves after all workers have stopped: the training tasks then end, and resume from this checkpoint
    live  training continues while most of the checkpoint is written: its step is later than that of the request
"""

import contextlib
import os
import time
from pathlib import Path
from typing import Callable, Dict, Optional, Tuple, Union

SAVE = "save"
NOW, HOLD, LIVE = "now", "hold", "live"
HOLD_S = 30.0  # training continues after this time if the process has not ended
LOOK_S = 0.1  # a look costs some microseconds, and a step may take less than a millisecond


def ask(folder: Union[str, Path], number: int, manner: str = NOW) -> None:
    """Ask the task of ``folder`` to save; a new request has a larger ``number`` than all before. Raises OSError."""
    partial = Path(folder) / f".{SAVE}.partial"
    with contextlib.suppress(FileNotFoundError):
        partial.unlink()
    with open(str(partial), "x") as file:  # a new file, because an existing name may block (a FIFO), or be a link
        file.write(f"{number} {manner}")
    os.replace(str(partial), str(Path(folder) / SAVE))


class SaveRequests:
    """The requests to the chief for a checkpoint.

    ``begun`` is the newest request that the chief took up, and ``manner`` is the manner of its save. ``done`` is the
    newest request that the chief has completed.
    """

    def __init__(self, folder: Optional[Path], clock: Callable[[], float] = time.monotonic):
        self._file = None if folder is None else Path(folder) / SAVE
        self._clock, self._look_at = clock, 0.0
        self.begun = self.done = 0
        self.manner = NOW

    def take(self) -> bool:
        """Take up a new request if there is one; return whether there was one."""
        now = self._clock()
        if self._file is None or now < self._look_at:
            return False
        self._look_at = now + LOOK_S
        number, manner = _read(self._file)
        if number <= self.begun:
            return False
        self.begun, self.manner = number, manner
        return True

    @property
    def is_open(self) -> bool:
        """Return whether the chief took up a request that is not yet completed."""
        return self.done < self.begun

    def answer(self) -> None:
        """Mark the request that was taken up as completed, whether or not the save succeeded."""
        self.done = self.begun

    def progress_fields(self) -> Dict[str, int]:
        """Return the fields of ``Progress`` about the requests."""
        return {"save_begun": self.begun, "save_done": self.done}


def _read(file: Path) -> Tuple[int, str]:
    """Return the number of the newest request, and its manner."""
    try:
        number, manner = file.read_text().split()
        return int(number), manner
    except (OSError, ValueError):
        return 0, NOW
