"""Text of a program as a terminal would leave it, without anything that a terminal obeys.

What a task prints, and what a host sends, reaches the terminals of people. A title, a colour, a cursor that moves or
a clipboard that is set must not.
"""

import re
from typing import Any

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # OSC and DCS: titles, clipboard
    r"|\x1b[ -/]*[0-Z\\^-~]"
)
# Also what turns the direction of text, and what ends a line for some and not for others.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_ESCAPED = re.compile(r"\\(?:[bfr]|u00(?:[01]|7[fF]|[89])|u20(?:2[89aAbBcCdDeE]|6[6-9]))")  # as JSON writes them


def plain(line: str) -> str:
    """Return a line as a terminal finally shows it.

    Of a progress bar that overwrites itself, the result is the newest state.
    """
    if not _CONTROLS.search(line):
        return line
    states = (
        without_controls(_apply_backspaces(state)).rstrip() for state in reversed(line.rstrip("\r\n").split("\r"))
    )
    return next((state for state in states if state), "")


def _apply_backspaces(text: str) -> str:
    """Let each backspace take a character away."""
    kept = []
    for character in text:
        if character != "\b":
            kept.append(character)
        elif kept:
            kept.pop()
    return "".join(kept)


def without_controls(text: str) -> str:
    """Return a text of any number of lines without escape sequences and control characters, save newlines and tabs."""
    return _CONTROLS.sub("", _SEQUENCES.sub("", text)) if _CONTROLS.search(text) else text


def last_line(printed: bytes) -> str:
    """Return the last line that is not empty, as a terminal shows it."""
    lines = [plain(line).strip() for line in printed.decode(errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")


def may_hold_controls(json_line: str) -> bool:
    """Return whether a line of JSON may have a string with a control character."""
    return bool(_ESCAPED.search(json_line) or _CONTROLS.search(json_line))


def clean(values: Any) -> Any:
    """Return values from JSON with every string in them ``without_controls``."""
    if isinstance(values, str):
        return without_controls(values)
    if isinstance(values, list):
        return [clean(value) for value in values]
    if isinstance(values, dict):
        return {clean(key): clean(value) for key, value in values.items()}
    return values
