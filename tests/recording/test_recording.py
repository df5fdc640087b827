"""A recording shows what a terminal would, frame by frame, and what its command printed last."""

import sys
from typing import List
from xml.etree import ElementTree

import pytest
from rich.console import Console
from rich.table import Table

from tests.recording.__main__ import record
from tests.recording.svg import Frame, animation
from tests.recording.terminal import Cell, Style, Terminal
from tests.support import ROOT


def shown(terminal: Terminal) -> List[str]:
    """The rows of a screen as text, the empty ones at its end left out."""
    rows = ["".join(cell.text for cell in row).rstrip() for row in terminal.screen]
    while rows and not rows[-1]:
        rows.pop()
    return rows


@pytest.mark.parametrize(
    ("written", "rows"),
    [
        ("one\r\ntwo", ["one", "two"]),
        ("longer\rshort", ["shortr"]),
        ("abcdefgh", ["abcdef", "gh"]),
        ("1\r\n2\r\n3\r\n4", ["2", "3", "4"]),
        ("old\r\nold\x1b[1A\r\x1b[2Knew", ["new", "old"]),
        ("abc\r\x1b[1Bd\x1b[K", ["abc", "d"]),
        ("abc\r\nd\x1b[Hx\x1b[J", ["x"]),
        ("\x1b[?25la\x1b[?25h", ["a"]),
    ],
)
def test_a_terminal_shows_what_it_gets(written: str, rows: List[str]) -> None:
    terminal = Terminal(6, 3)
    terminal.feed(written)
    assert shown(terminal) == rows


def test_a_character_has_the_style_that_was_set_last() -> None:
    terminal = Terminal(4, 1)
    terminal.feed("\x1b[1;32ma\x1b[0;2mb\x1b[0mc")
    assert terminal.screen[0] == (Cell("a", Style(32, bold=True)), Cell("b", Style(dim=True)), Cell("c"), Cell(" "))


def test_a_control_sequence_that_is_not_known_is_an_error_and_not_shown_wrongly() -> None:
    with pytest.raises(ValueError, match=r"found ESC\[2L"):
        Terminal().feed("\x1b[2L")


def test_what_rich_writes_into_a_terminal_is_what_it_writes_into_a_file() -> None:
    table = Table(title="tasks")
    table.add_row("worker:0", "[bold green]step 3[/]")
    terminal, plain = Terminal(), Console(width=80)
    with plain.capture() as text:
        plain.print(table)
    coloured = Console(width=80, force_terminal=True, color_system="standard")
    with coloured.capture() as controlled:
        coloured.print(table)
    terminal.feed(controlled.get().replace("\n", "\r\n"))
    assert shown(terminal) == [line.rstrip() for line in text.get().splitlines()]


def test_an_animation_draws_equal_rows_once_and_every_frame_has_its_time() -> None:
    terminal, frames = Terminal(10, 3), []
    for number in range(3):
        terminal.feed(f"\x1b[Hhead <&>\r\n{number}")
        frames.append(Frame(float(number), terminal.screen))
    text = animation(frames, "launch")
    ElementTree.fromstring(text)
    assert text.count("head &lt;&amp;&gt;") == 1
    assert text.count('<g class="f"') == text.count("@keyframes") == 3
    assert "@keyframes f1{0%{visibility:hidden}14.286%{visibility:visible}28.571%{visibility:hidden}}" in text


def test_an_animation_begins_with_its_last_frame_and_is_it_where_nothing_moves() -> None:
    text = animation([Frame(float(number), Terminal(2, 1).screen) for number in range(3)], "launch")
    assert "animation-delay:-2.00s" in text and "}}\n#f2{visibility:visible}\n" in text


def test_a_command_is_recorded_in_a_terminal_of_80_by_24_until_its_end() -> None:
    code = "import os, sys; print(sys.stdout.isatty(), *os.get_terminal_size(1)); print('\\u2713 end')"
    frames = record([sys.executable, "-c", code])
    rows = ["".join(cell.text for cell in row).rstrip() for row in frames[-1].screen]
    assert "True 80 24" in rows and "✓ end" in rows


def test_the_recording_of_the_readme_is_small_and_loads_nothing() -> None:
    text = (ROOT / "docs" / "up.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    assert len(text.encode()) < 200_000 and "succeeded" in text
    assert "<script" not in text and "url(" not in text and "@import" not in text
