"""A request to save is taken up once, and costs next to nothing while there is none."""

from pathlib import Path

from cluster.protocol.save_request import HOLD, LIVE, LOOK_S, NOW, SAVE, SaveRequests, ask
from tests.support.clocks import Clock


def test_a_request_is_taken_up_once_and_then_answered(tmp_path: Path) -> None:
    clock = Clock()
    requests = SaveRequests(tmp_path, clock)
    assert not requests.take()
    ask(tmp_path, 3)
    clock.now += LOOK_S
    assert requests.take() and requests.progress_fields() == {"save_begun": 3, "save_done": 0}
    requests.answer()
    clock.now += LOOK_S
    assert not requests.take() and requests.progress_fields() == {"save_begun": 3, "save_done": 3}


def test_between_two_looks_the_disk_is_left_alone(tmp_path: Path) -> None:
    clock = Clock()
    requests = SaveRequests(tmp_path, clock)
    assert not requests.take()
    ask(tmp_path, 1)
    assert not requests.take()
    clock.now += LOOK_S
    assert requests.take()


def test_a_file_that_cannot_be_read_asks_for_nothing(tmp_path: Path) -> None:
    (tmp_path / SAVE).write_text("soon")
    assert not SaveRequests(tmp_path).take() and not SaveRequests(None).take()


def test_each_request_has_its_own_manner(tmp_path: Path) -> None:
    clock = Clock()
    requests = SaveRequests(tmp_path, clock)
    for number, manner in ((1, HOLD), (2, LIVE), (3, NOW)):
        ask(tmp_path, number, manner)
        clock.now += LOOK_S
        assert requests.take() and requests.manner == manner and requests.is_open
        requests.answer()
        assert not requests.is_open
