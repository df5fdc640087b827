"""Records a command: ``python -m tests.recording docs/up.svg -- launch up hosts.yaml``."""

import argparse
import codecs
import fcntl
import os
import pty
import selectors
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import List, Sequence

from tests.recording.svg import Frame, animation
from tests.recording.terminal import Terminal

EVERY_S = 0.5  # between two frames
TIMEOUT_S = 120.0


def record(argv: Sequence[str], columns: int = 80, rows: int = 24) -> List[Frame]:
    """Run a command in a pseudo-terminal and return the frames that differ, the prompt's first.

    Raises:
      TimeoutError: it runs too long; it is killed.
    """
    terminal = Terminal(columns, rows)
    terminal.feed(f"$ {' '.join(argv)}\r\n")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "LINES": str(rows)}
    process = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=environ, start_new_session=True)
    os.close(theirs)
    try:
        with selectors.DefaultSelector() as output:  # select() takes no file beyond the first thousand of a process
            output.register(ours, selectors.EVENT_READ)
            return _frames(ours, output, terminal)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _frames(ours: int, output: selectors.BaseSelector, terminal: Terminal) -> List[Frame]:
    began = time.monotonic()
    frames = [Frame(0.0, terminal.screen)]
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pending, running = "", True
    while running:
        due = began + EVERY_S * (1 + (time.monotonic() - began) // EVERY_S)
        while running and time.monotonic() < due:
            if output.select(max(0.0, due - time.monotonic())):
                data = _read(ours)
                running = bool(data)
                pending = _feed(terminal, pending + decoder.decode(data))
        if time.monotonic() - began > TIMEOUT_S:
            raise TimeoutError(f"command: expected its end within {TIMEOUT_S:.0f} s, found none; record a shorter one")
        if terminal.screen != frames[-1].screen:
            frames.append(Frame(time.monotonic() - began, terminal.screen))
    return frames


def _read(ours: int) -> bytes:
    try:
        return os.read(ours, 65536)
    except OSError:  # the command has closed its terminal
        return b""


def _feed(terminal: Terminal, text: str) -> str:
    """Show text, but for a control sequence at its end that is not whole; return that."""
    escape = text.rfind("\x1b")
    whole = escape < 0 or any(character.isalpha() for character in text[escape:])
    terminal.feed(text if whole else text[:escape])
    return "" if whole else text[escape:]


def main() -> None:
    """Read the command line and write the picture."""
    parser = argparse.ArgumentParser("python -m tests.recording", description=__doc__)
    parser.add_argument("picture", type=Path, help="the SVG file to write")
    parser.add_argument("command", nargs="+", help="after --: what to record")
    asked = parser.parse_args()
    frames = record(asked.command)
    asked.picture.write_text(animation(frames, " ".join(asked.command)), encoding="utf-8")
    print(f"{asked.picture}: {len(frames)} frames, {asked.picture.stat().st_size / 1000:.0f} kB", file=sys.stderr)


if __name__ == "__main__":
    main()
