"""The command ``launch``, and ``python -m launch``: Ctrl-C ends it in one line, from its first moment to its last."""

import os
import signal
from types import FrameType
from typing import Any, Optional


def main() -> None:
    """Load the command line, which takes half a second, and run it."""
    _on_ctrl_c(_leave)  # no exception while modules are loaded: Python drops one that comes into a module's lock
    from launch import cli  # here: a Ctrl-C may come into it

    try:
        cli.main(loaded=lambda: _on_ctrl_c(signal.default_int_handler))  # a verb ends what it has begun
    except KeyboardInterrupt:
        _leave(signal.SIGINT, None)
    finally:
        _on_ctrl_c(_leave)


def _on_ctrl_c(handler: Any) -> None:
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as a shell has it for what runs in the background
        signal.signal(signal.SIGINT, handler)


def _leave(number: int, frame: Optional[FrameType]) -> None:
    """End this process at once, which has begun nothing, or has ended it."""
    os.write(2, b"interrupted by SIGINT\n")
    os._exit(128 + number)


if __name__ == "__main__":
    main()
