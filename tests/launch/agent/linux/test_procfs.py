"""Files that may be gone say nothing, and no error is raised for them."""

import os
import threading
from pathlib import Path

from launch.agent.linux.procfs import LONGEST, MOST, names_in, text_of, threads


def test_what_is_gone_says_nothing(tmp_path: Path) -> None:
    assert (text_of(tmp_path / "gone"), names_in(tmp_path / "gone")) == ("", [])
    assert (text_of(tmp_path), threads(0)) == ("", [])


def test_bytes_that_are_no_text_and_what_is_too_long_are_no_errors(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"\xff" * (LONGEST + 1))
    assert text_of(tmp_path / "long") == "\ufffd" * LONGEST
    assert names_in(tmp_path) == ["long"]


def test_of_a_process_with_very_many_threads_some_are_told_of() -> None:
    enough = threading.Event()
    begun = [threading.Thread(target=enough.wait) for _ in range(MOST)]
    for each in begun:
        each.start()
    try:
        assert len(threads(os.getpid())) == MOST
    finally:
        enough.set()
        for each in begun:
            each.join()
