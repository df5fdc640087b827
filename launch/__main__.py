"""The command ``launch``, and ``python -m launch``: Ctrl-C always ends the process with one line of output."""

import contextlib
import os
import signal
from types import FrameType
from typing import Any, Optional

from launch import output


def main() -> None:
    """Load the command line, which takes half a second, and run it."""
    printed = output.install()
    _on_ctrl_c(_leave)  # no exception during imports: Python drops an exception in a module's lock
    from launch import cli  # imported here, because Ctrl-C may come during the import

    def begin(verb: str) -> None:
        printed.goes_on = verb in output.GOES_ON
        _on_ctrl_c(signal.default_int_handler)  # a verb cleans up

    try:
        cli.main(loaded=begin)
    except KeyboardInterrupt:
        _leave(signal.SIGINT, None)
    finally:
        _on_ctrl_c(_leave)


def _on_ctrl_c(handler: Any) -> None:
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # a shell ignores it for background jobs
        signal.signal(signal.SIGINT, handler)


def _leave(number: int, frame: Optional[FrameType]) -> None:
    """End this process at once, before the verb has begun anything or after the verb has cleaned up."""
    with contextlib.suppress(OSError):  # stderr may be full, too
        os.write(2, b"interrupted by SIGINT\n")
    os._exit(128 + number)


if __name__ == "__main__":
    main()
