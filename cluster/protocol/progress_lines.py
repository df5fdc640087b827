"""Step, loss and rate of a program under ``command:``, read from lines that it writes.

A program prints these values into its log, where the groups ``step``, ``loss`` and ``rate`` of the regular expression
``progress:`` find them. Or a program appends lines of JSON, such as ``{"step": 12, "loss": 0.3, "rate": 88.0}``, to the
file ``$LAUNCH_PROGRESS``. Only the newest values count, so reading begins with the newest line.
"""

import json
import re
import warnings
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, NamedTuple, Optional, Pattern, Sequence, Union

FILE = "progress.jsonl"  # in the task's folder; LAUNCH_PROGRESS has its path
STEP, LOSS, RATE = GROUPS = ("step", "loss", "rate")
LONGEST = 4096  # bytes of a line; a longer line is not read
_LONGEST_NUMBER = 40  # characters
_MOST = 2**63
_EXAMPLE = r"write 'step (?P<step>\d+).*loss (?P<loss>\S+)'"
_EXPECTED = {STEP: "a whole number from 0", LOSS: "a number", RATE: "examples per second"}


class Mistake(NamedTuple):
    """A mistake in an expression or a line: the expected part, the part found, and a hint for its author."""

    expected: str
    found: str
    hint: str = ""


def mistake_in(expression: str) -> Optional[Mistake]:
    """Return the mistake in an expression for ``progress:``; None for an expression without a mistake."""
    try:
        groups = list(compiled(expression).groupindex)
    except ValueError as error:
        return Mistake("a regular expression of Python", str(error), _EXAMPLE)
    unknown = [name for name in groups if name not in GROUPS]
    if unknown:
        return Mistake(
            f"the groups {', '.join(GROUPS)}", f"the group '{unknown[0]}'", "write (?:…) for an unnamed group"
        )
    if STEP not in groups:
        return Mistake("a group named step", ", ".join(groups) or "no named group", _EXAMPLE)
    return None


def compiled(expression: str) -> Pattern[str]:
    """Return the compiled expression. Raises ValueError with the reason in Python's words."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of notations that a later Python reads differently
            return re.compile(expression)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None


@dataclass
class Read:
    """The newest values in some lines, by name, and the newest mistake for each name whose text was not a number."""

    values: Dict[str, Union[int, float]] = field(default_factory=dict)
    problems: Dict[str, Mistake] = field(default_factory=dict)

    def take(self, given: Mapping[str, Any]) -> None:
        """Add the values of an earlier line, ``given``, by name; values that newer lines have remain."""
        for name in GROUPS:
            value = given.get(name)
            if value is None or name in self.values:
                continue
            number = _number(name, value)
            if number is not None:
                self.values[name] = number
            else:
                found = str(value).encode(errors="replace").decode()  # JSON may have half a character
                self.problems.setdefault(name, Mistake(_EXPECTED[name], found))


def read_log(lines: Sequence[str], expression: Pattern[str]) -> Read:
    """Return the newest step, loss and rate that ``expression`` finds in lines of a log."""
    read, wanted = Read(), set(expression.groupindex)
    for line in reversed(lines):
        match = expression.search(line)
        if match is not None:
            read.take(match.groupdict())
        if wanted.issubset(read.values):
            break
    return read


def read_json(lines: Sequence[str]) -> Read:
    """Return the newest step, loss and rate in ``lines``. Each line is a JSON object; its other keys are ignored."""
    read = Read()
    for line in reversed(lines):
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            values = None
        if isinstance(values, dict):
            read.take(values)
        elif line.strip():
            read.problems.setdefault(FILE, Mistake("a JSON object on each line", line))
        if len(read.values) == len(GROUPS):
            break
    return read


def _number(name: str, value: Any) -> Optional[Union[int, float]]:
    """Return the value of a group or a key as a number that fits the name; None where it does not."""
    if isinstance(value, str):
        value = _parsed(value.strip())
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return None
    if name == LOSS:
        return number
    if not 0 <= number < _MOST or (name == STEP and value != int(value)):  # also nan and inf
        return None
    return int(value) if name == STEP else number


def _parsed(text: str) -> Optional[Union[int, float]]:
    """Return a text such as ``12``, ``1,200`` or ``3e-4`` as a number; None for another text."""
    text = re.sub(r"(?<=\d),(?=\d{3}(?:\D|$))", "", text[: _LONGEST_NUMBER + 1])
    try:
        return None if len(text) > _LONGEST_NUMBER else int(text) if text.isdigit() else float(text)
    except ValueError:
        return None
