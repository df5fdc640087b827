"""The columns of a table for which a line has room; they give way by their rank."""

from typing import List, NamedTuple, Optional, Sequence

GAP = 2  # between two columns


class Room(NamedTuple):
    """The room that a column asks for.

    Attributes:
      rank: of two columns, the one with the higher rank gives way; a column of rank 0 is never cut.
      least: the width to which the column may be cut, its texts with an ellipsis; None for a column never cut.
    """

    rank: int
    least: Optional[int] = None


def fitting(columns: Sequence[Room], natural: Sequence[int], width: Optional[int]) -> List[int]:
    """Return the width of each column, 0 for a column that has no room.

    ``natural`` has the width of each column's longest text. Room goes to the columns in the order of their rank.
    """
    if width is None:
        return list(natural)
    given, room = [0] * len(columns), width  # rich counts a gap behind the last column, too
    for index in sorted(range(len(columns)), key=lambda index: columns[index].rank):
        least = columns[index].least
        needed = natural[index] if least is None else min(least, natural[index])
        if needed + GAP <= room or columns[index].rank == 0:
            given[index] = max(needed, min(natural[index], room - GAP))
            room -= given[index] + GAP
    return given


def cut(text: str, width: Optional[int]) -> str:
    """Return a text of at most so many characters; where it is cut, with an ellipsis at its end."""
    return text if width is None or len(text) <= width else f"{text[: max(0, width - 1)]}…"
