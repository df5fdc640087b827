"""The error that ended a program, found in the last lines of its log.

A foreign program writes no outcome, and its last line is often not its error. A message may continue for lines,
TensorFlow adds the place where an operation was created, and other threads continue to write. PyTorch puts the rank in
front of each line, and the search leaves the rank out. These lines count as errors:

    Python     the error of a traceback, the last one of a chain; for a group also its first member
    a parser   ``train.py: error: …`` below the usage, as argparse and click write it
    C++        ``F tensorflow/…] Check failed: …``, ``terminate called after throwing …``
    a crash    ``Fatal Python error: …``, or a shell's ``Segmentation fault``

The last error counts; in C++, the first one. A traceback that Python only reports, from a destructor or at exit, never
counts. A traceback of a thread, and ``Aborted``, count where the log has no other error. A program that wrote more than
``MOST_AFTER`` lines after an error has survived the error.
"""

import re
from itertools import islice
from typing import Iterator, List, NamedTuple, Optional, Sequence

SEARCHED = 400  # lines
LONGEST = 300  # characters
MOST_AFTER = 20  # lines without indentation, which a stack's lines have
MOST_JOINED = 3  # further lines of a message that begins with ``From /job:ps/replica:0/task:0:``
# A progress bar without a newline may precede the header; the bars of a group's members may not.
_HEADER = re.compile(r"^(?:  \+ Exception Group |(?! *\| )(?:.*\S)?)Traceback \(most recent call last\):$")
_CHAINED = re.compile(r"^(?:During handling of the above exception|The above exception was the direct cause)\b")
_REPORTED = re.compile(r"^(?:Exception ignored (?:in|on)\b|Error in (?:atexit\._run_exitfuncs|sys\.\w+hook):)")
_OF_A_THREAD = re.compile(r"^(?:Exception in thread |Task exception was never retrieved|future: )")
_RAISED = re.compile(r"^(?P<module>(?:[\w<>]+\.)*)(?P<name>[A-Za-z_]\w*)(?:$|:(?: |$))")
_LEVELS = ("DEBUG", "INFO", "WARNING", "WARN", "ERROR", "CRITICAL", "FATAL")
_SYNTAX = re.compile(r"^(?:SyntaxError|IndentationError|TabError): ")
_USAGE = re.compile(r"^usage: ", re.IGNORECASE)
_PARSER = re.compile(r"^(?:[^:]+: error|Error): ")
_FLAGS = re.compile(r"^FATAL Flags parsing error:")
_CHECK = re.compile(
    r"^(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: F |F\d{4}(?:\d{4})? \d\d:\d\d:\d\d|terminate called after throwing "
    r"|Fatal Python error: (?!Aborted)|(?:.*: line \d+: +\d+ )?(?:Segmentation fault|Bus error|Illegal instruction)\b)"
)
_ABORTED = re.compile(r"^(?:Fatal Python error: Aborted|terminate called |(?:.*: line \d+: +\d+ )?Aborted\b)")
_INTRODUCES = re.compile(r"(?::|\bfound\.)$")
_RANK = re.compile(r"^(?:\[(?:default|rank)\d+\]: ?)+")  # PyTorch's, in front of a traceback's lines
# TensorFlow 2 writes below some errors where their operation was defined, and only then what went wrong.
_DEFINED = re.compile(r"\bdefined at \(most recent call last\):$")
_NODE = re.compile(r"^Node: ")
_IN_USER_CODE = ": in user code:"  # AutoGraph's: the error itself follows, indented, below the lines of code


class Error(NamedTuple):
    """An error in a log: ``text`` is one line, and ``place`` the index of the line at which the error was found.

    ``raised`` is True for an exception of Python code; ``text`` then begins with the name of the exception.
    """

    text: str
    raised: bool = False
    place: int = 0


def error_in(lines: Sequence[str]) -> Optional[Error]:
    """Return the error that ended a program whose log ends with ``lines``; None where no error is known."""
    search = _Search([_RANK.sub("", line) for line in lines[-SEARCHED:]])
    for place in range(len(search.lines)):
        search.look(place)
    error = search.found or search.aside
    return error if error is not None and not _has_survived(search.lines, error) else None


def _has_survived(lines: List[str], error: Error) -> bool:
    return sum(not line[:1].isspace() for line in lines[error.place + 1 :]) > MOST_AFTER


class _Search:
    """One pass over the lines; ``aside`` is the error that counts where no other exists."""

    def __init__(self, lines: List[str]):
        self.lines = lines
        self.found: Optional[Error] = None
        self.aside: Optional[Error] = None
        self._native = False  # whether ``found`` comes from C++ code
        self._usage = False  # whether a parser has written its usage
        self._announced = ""  # the line above the first traceback of a chain

    def look(self, place: int) -> None:
        line = self.lines[place]
        if _HEADER.match(line):
            self._traceback(place)
        elif _CHECK.match(line):
            self._take(Error(_add_what(self.lines, place), place=place), native=True)
        elif _ABORTED.match(line):
            self.aside = self.aside or Error(_cut(line), place=place)
        elif _SYNTAX.match(line) and place and self.lines[place - 1].startswith("  "):
            self._take(Error(_cut(line), True, place))
        elif _FLAGS.match(line) or (self._usage and _PARSER.match(line)):
            self._take(Error(_join(self.lines, place), place=place))
        self._usage = self._usage or bool(_USAGE.match(line))

    def _traceback(self, place: int) -> None:
        above = self.lines[place - 1] if place else ""
        self._announced = self._announced if _CHAINED.match(above) else above
        error = _find_raised(self.lines, place)
        if error is None or _REPORTED.match(self._announced):
            return
        if _OF_A_THREAD.match(self._announced):
            self.aside = error
        else:
            self._take(error)

    def _take(self, error: Error, native: bool = False) -> None:
        if not (native and self._native):
            self.found, self._native = error, native


def _find_raised(lines: List[str], header: int) -> Optional[Error]:
    """Return the error of the traceback at ``header``; None where the traceback has no error."""
    margin = "  | " if lines[header].startswith("  + ") else ""
    below = [line[len(margin) :] for line in _block(lines, header, margin)]
    names = [place for place, line in enumerate(below) if _names_exception(line)]
    place = next((place for place in names if _is_error(below[place])), names[0] if names else None)
    if place is None:
        return None
    text = _strip_module(_join(below, place))
    members = (line[6:] for line in lines[header:] if line.startswith("    | ")) if margin else iter(())
    member = next(filter(_is_error, members), None)
    text = text if member is None else _cut(f"{text}, first: {_strip_module(member)}")
    return Error(text, True, header + 1 + place)


def _block(lines: List[str], header: int, margin: str) -> Iterator[str]:
    """Yield the lines below a header, up to the next header or, in a group, up to its first member."""
    for line in lines[header + 1 :]:
        if _HEADER.match(line) or not line.startswith(margin):
            return
        yield line


def _names_exception(line: str) -> bool:
    """Return whether a line may be ``module.Name: text`` of an exception, unlike ``INFO: text``."""
    match = _RAISED.match(line)
    return match is not None and match.group("name") not in _LEVELS


def _is_error(line: str) -> bool:
    """Return whether a line's name is the name of an exception.

    The name has a module or begins with a capital letter; ``loss: 0.3`` has neither.
    """
    match = _RAISED.match(line)
    return (
        match is not None and _names_exception(line) and bool(match.group("module") or match.group("name")[0].isupper())
    )


def _strip_module(text: str) -> str:
    """Return ``UnavailableError: text`` for ``tensorflow.python.framework.errors_impl.UnavailableError: text``."""
    match = _RAISED.match(text)
    return text if match is None else text[match.start("name") :]


def _join(lines: List[str], place: int) -> str:
    """Return a message as one line, joined with the lines that the message only introduces."""
    text, *further = islice(_without_places(lines[place:]), 1 + MOST_JOINED)
    if text.endswith(_IN_USER_CODE):
        return _cut(next((line.strip() for line in lines[place + 1 :] if _is_error(line.strip())), text))
    for line in further:
        if not _INTRODUCES.search(text):
            break
        text = f"{text} {line}"
    return _cut(text)


def _without_places(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a message, without those that only show where TensorFlow's operation was defined."""
    is_place = False
    for line in lines:
        if _DEFINED.search(line):
            is_place = True
        elif not is_place or not (line[:1].isspace() or _NODE.match(line)):
            is_place = False
            yield line.strip()


def _add_what(lines: List[str], place: int) -> str:
    """Return a line of C++ code, joined with the message of the exception that the line names."""
    further = "".join(lines[place + 1 : place + 2]).strip()
    return _cut(f"{lines[place]} {further}" if further.startswith("what():") else lines[place])


def _cut(text: str) -> str:
    return text[:LONGEST]
