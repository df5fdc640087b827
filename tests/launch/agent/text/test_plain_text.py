"""What a program prints is read as a terminal would leave it, and nothing in it does anything to a terminal."""

import json

import pytest

from launch.agent.text import clean, may_hold_controls, plain, without_controls

KERAS = "1/10 [=>...]" + "\b" * 12 + "\r2/10 [==>..]" + "\b" * 13 + "\r10/10 [=====]\n"


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("step 5, loss 0.1\tok", "step 5, loss 0.1\tok"),
        ("10 %\r50 %\r100 %\n", "100 %"),
        ("10 %\r100 %\r", "100 %"),
        ("done\r   \r\n", "done"),
        ("dos\r\n", "dos"),
        ("\r\r\n", ""),
        (KERAS, "10/10 [=====]"),
        ("ab\b\bcd\b\b\b\bef", "ef"),
        ("\x1b[1;31mred\x1b[0m\x1b[2K", "red"),
        ("\x1b]0;owned\x07prompt", "prompt"),
        ("\x1b]52;c;cm0gLXJm\x1b\\clipboard", "clipboard"),
        ("\x1b]0;never ended", "]0;never ended"),
        ("\x9b31mC1\x9d0;title\x9c", "C1"),
        ("\x1bc\x1b(0reset", "reset"),
        ("bell\x07 null\x00 delete\x7f", "bell null delete"),
        ("exe.\u202egnp\u2066", "exe.gnp"),
        ("Ünïcödé 数字 ✓", "Ünïcödé 数字 ✓"),
    ],
)  # fmt: skip
def test_a_line_is_its_newest_state_without_what_a_terminal_obeys(line: str, seen: str) -> None:
    assert plain(line) == seen


@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x202E])
def test_no_control_character_gets_through_save_newline_and_tab(code: int) -> None:
    expected = f"a{chr(code)}é" if chr(code) in "\n\t" else "aé"
    assert without_controls(f"a{chr(code)}é") == expected
    assert plain(f"ab{chr(code)}").strip() in ("ab", "a")


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x202E])
def test_json_with_a_control_character_is_known_before_it_is_looked_through(code: int, ascii_only: bool) -> None:
    text = json.dumps({"cause": f"a{chr(code)}b"}, ensure_ascii=ascii_only)
    assert may_hold_controls(text) == (chr(code) not in "\n\t")
    assert not may_hold_controls(json.dumps({"cause": "a line\nand\tmore ü ✓"}, ensure_ascii=ascii_only))


def test_every_string_of_a_message_is_cleaned() -> None:
    told = {"a\x1b[1m": ["b\x07", {"c": "\x1b]0;x\x07d"}], "n": 1, "none": None, "yes": True, "f": 0.5}
    assert clean(told) == {"a": ["b", {"c": "d"}], "n": 1, "none": None, "yes": True, "f": 0.5}
