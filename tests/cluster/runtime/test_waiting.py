"""A wait ends with its condition, or with an error that says what was waited for."""

import socket

import pytest

from cluster.runtime.waiting import listens, wait_for


def test_a_wait_returns_once_its_condition_holds() -> None:
    answers = iter([False, False, True])
    wait_for("three questions", lambda: next(answers), poll_s=0)
    assert list(answers) == []


def test_a_wait_that_is_too_long_names_what_was_waited_for() -> None:
    with pytest.raises(TimeoutError, match="for ps:0 at host:2222"):
        wait_for("ps:0 at host:2222", lambda: False, timeout_s=0, poll_s=0)


def test_an_address_listens_while_a_socket_there_accepts() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert listens(address)
    assert not listens(address)
