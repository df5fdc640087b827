"""Ask the chief for a checkpoint now, by a number in a file of its task's folder.

The chief reads the file between steps. A second word, ``hold``, asks the chief to take no further step: all that
trains ends next, and goes on from this checkpoint.
"""

import contextlib
import os
import time
from pathlib import Path
from typing import Callable, Dict, Optional, Tuple, Union

SAVE = "save"
HOLD = "hold"
HOLD_S = 30.0  # without an end of the process, training goes on
LOOK_S = 0.1  # a look costs some microseconds, a step may take less than a millisecond


def ask(folder: Union[str, Path], number: int, hold: bool = False) -> None:
    """Ask the task of this folder to save. A higher number than any before is a new request. Raises OSError.

    Args:
      hold: whether the task is to wait for its end afterwards.
    """
    partial = Path(folder) / f".{SAVE}.partial"
    with contextlib.suppress(FileNotFoundError):
        partial.unlink()
    with open(str(partial), "x") as file:  # a new file: whatever else is there would be waited for, or written through
        file.write(f"{number} {HOLD}" if hold else str(number))
    os.replace(str(partial), str(Path(folder) / SAVE))


class SaveRequests:
    """The requests to the chief for a checkpoint.

    ``begun`` is the newest request that the chief took up, ``done`` the newest that it has followed. ``hold`` is
    whether the chief is to wait after the one that it took up.
    """

    def __init__(self, folder: Optional[Path], clock: Callable[[], float] = time.monotonic):
        self._file = None if folder is None else Path(folder) / SAVE
        self._clock, self._look_at = clock, 0.0
        self.begun = self.done = 0
        self.hold = False

    def take(self) -> bool:
        """Take up a new request, and return whether there is one."""
        now = self._clock()
        if self._file is None or now < self._look_at:
            return False
        self._look_at = now + LOOK_S
        number, hold = _read(self._file)
        if number <= self.begun:
            return False
        self.begun, self.hold = number, hold
        return True

    def answer(self) -> None:
        """Mark the request that was taken up as followed, as far as it could be."""
        self.done = self.begun

    def progress_fields(self) -> Dict[str, int]:
        """Return the fields of ``Progress`` on the requests."""
        return {"save_begun": self.begun, "save_done": self.done}


def _read(file: Path) -> Tuple[int, bool]:
    """Return the number of the newest request, and whether it asks to hold."""
    try:
        number, *more = file.read_text().split()
        return int(number), more == [HOLD]
    except (OSError, ValueError):
        return 0, False
