"""Sections side by side: their pieces come as they are found, and who fails or hangs is named."""

import threading
from typing import Any, Iterator

from launch.agent.facts import pieces
from launch.agent.linux.kernel_log import Unreadable
from launch.agent.wire.host_facts import Gap


def quick() -> Iterator[Any]:
    yield "a", 1
    yield "b", 2


def test_every_piece_comes_and_an_error_is_a_gap_beside_them() -> None:
    def breaks() -> Iterator[Any]:
        yield "c", 3
        raise ValueError("odd")

    def refuses() -> Iterator[Any]:
        raise Unreadable("join the group adm")
        yield

    found = list(pieces({"quick": quick, "broken": breaks, "kernel": refuses}, 60.0))
    assert sorted(each for each in found if not isinstance(each, Gap)) == [("a", 1), ("b", 2), ("c", 3)]
    gaps = sorted((each for each in found if isinstance(each, Gap)), key=lambda gap: gap.section)
    assert gaps == [Gap("broken", "ValueError: odd"), Gap("kernel", "join the group adm")]


def test_a_section_that_hangs_is_named_at_the_deadline_and_its_beginning_counts() -> None:
    over = threading.Event()

    def hangs() -> Iterator[Any]:
        yield "c", 3
        over.wait(60)

    found = list(pieces({"hanging": hangs, "quick": quick}, 0.5))
    over.set()
    assert found[-1] == Gap("hanging", "not done within 0 s", late=True)
    assert sorted(each for each in found[:-1] if not isinstance(each, Gap)) == [("a", 1), ("b", 2), ("c", 3)]
