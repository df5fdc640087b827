"""``launch board``: what the chief's host tells, and how every way to fail is told."""

import json
import signal
from typing import Any, Callable

import pytest

from launch.board import Board, must_answer
from launch.channel import Silence
from launch.errors import HostProblem, Interrupted
from launch.tunnel import Tunnel
from tests.launch.fakes import FakeChannel, FakeHost, fleet_of

NOTHING_MISSING = b'{"missing": []}\n'
SHOWN = b'{"run": "r-1", "port": 4711}\n'


def board_of(*script: Any, complaint: str = "") -> Board:
    channel = FakeChannel(NOTHING_MISSING, *script, complaint=complaint)
    return Board(fleet_of({"h1": FakeHost("h1", channel)}))


def refusal(act: Callable[[], Any]) -> str:
    with pytest.raises(HostProblem) as caught:
        act()
    return str(caught.value)


def test_the_run_that_is_shown_is_known_and_its_port_is_dialled_on_the_chiefs_host() -> None:
    with board_of(Silence(), SHOWN) as board:
        assert board.run == "r-1"
        assert refusal(board.dial) == "h1: nothing at port 4711"


def test_what_hinders_it_is_told_with_the_host() -> None:
    told = json.dumps({"error": "no TensorBoard in py"}).encode() + b"\n"
    assert refusal(board_of(told).__enter__) == "h1: no TensorBoard in py"


def test_a_board_that_ends_while_it_is_looked_at_is_told_of() -> None:
    with board_of(SHOWN, Silence(), b'{"error": "TensorBoard ended"}\n') as board:
        assert refusal(board.stay) == "h1: TensorBoard ended"


def test_a_connection_that_breaks_is_told_of() -> None:
    with board_of(SHOWN, OSError("reset")) as board:
        assert refusal(board.stay) == "h1: lost TensorBoard: reset"
    with board_of(SHOWN, complaint="Killed") as board:
        assert refusal(board.stay) == "h1: lost TensorBoard: Killed"


def test_a_signal_ends_the_wait_for_it_and_the_look_at_it() -> None:
    channel = FakeChannel(NOTHING_MISSING, SHOWN)
    fleet = fleet_of({"h1": FakeHost("h1", channel)})
    with Board(fleet) as board:
        fleet.interrupts.received.append(signal.SIGINT)
        board.stay()
    assert channel.closed
    fleet.hosts["h1"] = FakeHost("h1", FakeChannel(NOTHING_MISSING))
    with pytest.raises(Interrupted):
        Board(fleet).__enter__()


def test_a_port_behind_which_nobody_answers_is_told_of() -> None:
    def gone() -> None:
        raise HostProblem("h1", "out of reach")

    with Tunnel(gone, 0) as tunnel:
        said = refusal(lambda: must_answer(tunnel.port))
    assert said.startswith(f"this machine: TensorBoard does not answer at port {tunnel.port}: ")
