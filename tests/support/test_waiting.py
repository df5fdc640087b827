"""A test that waited in vain shows what each thread was doing."""

import threading

import pytest

from tests.support.waiting import eventually


def test_what_does_not_come_is_named_with_what_other_threads_do() -> None:
    ended = threading.Event()
    other = threading.Thread(target=ended.wait, name="worker:1", daemon=True)
    other.start()
    try:
        with pytest.raises(AssertionError, match=r"(?s)not within 0 s: the end\n.*worker:1:\n.*in wait\n"):
            eventually("the end", lambda: False, patience_s=0.0)
    finally:
        ended.set()
        other.join(10)


def test_what_comes_is_returned() -> None:
    assert eventually("a number", iter([0, 0, 7]).__next__) == 7
