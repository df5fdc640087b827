"""A terminal's screen, from the bytes that a program writes: as much of one as rich and click use."""

import re
from typing import List, NamedTuple, Optional, Tuple

_PIECE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|\x1b.|([\r\n\b\a])|([^\x1b\r\n\b\a])", re.DOTALL)
BRIGHT = 90  # the first of the eight bright colours, as an SGR code


class Style(NamedTuple):
    """How a character looks; a colour is its SGR code, 30 to 37 or 90 to 97."""

    colour: Optional[int] = None
    bold: bool = False
    dim: bool = False


class Cell(NamedTuple):
    """One character of the screen."""

    text: str = " "
    style: Style = Style()


Screen = Tuple[Tuple[Cell, ...], ...]


class Terminal:
    """``feed`` what a program writes; ``screen`` is what a terminal then shows."""

    def __init__(self, columns: int = 80, rows: int = 24):
        self.columns, self.rows = columns, rows
        self._cells = [self._blank() for _ in range(rows)]
        self._row = self._column = 0
        self._style = Style()

    @property
    def screen(self) -> Screen:
        """The rows, from above, each with every column."""
        return tuple(tuple(row) for row in self._cells)

    def feed(self, text: str) -> None:
        """Show further text; a control sequence in it must be whole.

        Raises:
          ValueError: it has a control sequence that no case here knows.
        """
        for arguments, command, control, character in _PIECE.findall(text):
            if command:
                self._control(command, arguments)
            elif control:
                self._move(control)
            elif character:
                self._put(character)

    def _blank(self) -> List[Cell]:
        return [Cell()] * self.columns

    def _put(self, character: str) -> None:
        if self._column == self.columns:
            self._column = 0
            self._next_row()
        self._cells[self._row][self._column] = Cell(character, self._style)
        self._column += 1

    def _move(self, control: str) -> None:
        if control == "\r":
            self._column = 0
        elif control == "\n":
            self._next_row()
        elif control == "\b":
            self._column = max(0, self._column - 1)

    def _next_row(self) -> None:
        if self._row == self.rows - 1:
            self._cells = [*self._cells[1:], self._blank()]
        else:
            self._row += 1

    def _control(self, command: str, arguments: str) -> None:
        if arguments.startswith("?"):  # the cursor is hidden, or shown
            return
        numbers = [int(number or 0) for number in arguments.split(";")]
        if command == "m":
            self._style = styled(self._style, numbers)
        elif command == "A":
            self._row = max(0, self._row - max(1, numbers[0]))
        elif command == "B":
            self._row = min(self.rows - 1, self._row + max(1, numbers[0]))
        elif command == "K":
            self._erase(self._row, numbers[0])
        elif command == "J" and numbers[0] in (0, 2):
            self._erase(self._row, numbers[0])
            below = range(self._row + 1 if numbers[0] == 0 else 0, self.rows)
            for row in below:
                self._cells[row] = self._blank()
        elif command == "H":
            self._row, self._column = max(1, numbers[0]) - 1, max(1, numbers[-1] if len(numbers) > 1 else 1) - 1
        else:
            raise ValueError(f"control sequence: expected one that rich uses, found ESC[{arguments}{command}; add it")

    def _erase(self, row: int, part: int) -> None:
        first, last = {0: (self._column, self.columns), 1: (0, self._column + 1), 2: (0, self.columns)}[part]
        self._cells[row][first:last] = [Cell()] * (min(last, self.columns) - first)


def styled(style: Style, codes: List[int]) -> Style:
    """Return a style after the codes of one SGR sequence."""
    for code in codes:
        if code == 0:
            style = Style()
        elif code in (1, 2):
            style = style._replace(bold=True) if code == 1 else style._replace(dim=True)
        elif code == 22:
            style = style._replace(bold=False, dim=False)
        elif code == 39:
            style = style._replace(colour=None)
        elif 30 <= code <= 37 or BRIGHT <= code < BRIGHT + 8:
            style = style._replace(colour=code)
    return style
