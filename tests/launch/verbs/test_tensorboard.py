"""``launch board``: what the chief's host tells, and how every way to fail is told."""

import json
import signal
from pathlib import Path
from typing import Any, Callable, List

import pytest

from launch.errors import HostProblem, Interrupted, ProblemKind
from launch.hosts.channel import Silence
from launch.verbs.board import Board, Tunnel, must_answer
from tests.launch.monitoring.web import fetch, served
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of
from tests.support.launch.launcher import Launcher

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


class DeafChannel(FakeChannel):
    """Nobody takes a beat any more: the program there has ended, and said why before."""

    def send(self, data: bytes) -> None:
        if b"beat" in data:
            raise BrokenPipeError(32, "Broken pipe")
        super().send(data)


@pytest.mark.parametrize(
    "script, expected",
    [
        ([b'{"error": "no summaries"}\n'], "h1: no summaries"),
        ([], "h1: lost TensorBoard: [Errno 32] Broken pipe"),
        ([Silence()], "h1: lost TensorBoard: [Errno 32] Broken pipe"),
    ],
)
def test_a_reason_that_was_sent_is_reported_though_the_program_there_takes_no_beat(
    script: List[Any], expected: str
) -> None:
    channel = DeafChannel(NOTHING_MISSING, *script)
    assert refusal(Board(fleet_of({"h1": FakeHost("h1", channel)})).__enter__) == expected


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
        raise HostProblem("h1", ProblemKind.UNREACHABLE, "out of reach")

    with Tunnel(gone, 0) as tunnel:
        said = refusal(lambda: must_answer(tunnel.port))
    assert said.startswith(f"this machine: TensorBoard does not answer at port {tunnel.port}: ")


# -- on this machine, with a stand-in for TensorBoard

STAND_IN = """
import http.server, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(" ".join(sys.argv[1:]).encode())
server = http.server.HTTPServer(("127.0.0.1", 0), Page)
print("TensorBoard 9.9 at http://127.0.0.1:%d/ (Press CTRL+C to quit)" % server.server_port, flush=True)
server.serve_forever()
"""


def test_the_verb_serves_the_runs_folder_on_this_machine_until_ctrl_c(launch: Launcher, tmp_path: Path) -> None:
    package = tmp_path / "python" / "tensorboard"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "main.py").write_text(STAND_IN)
    launch.write("touch $LAUNCH_TASK_DIR/events.out.tfevents.1")
    assert launch("up").returncode == 0
    with served(launch.begin("board", PYTHONPATH=str(package.parent))) as url:
        assert fetch(url).split()[:2] == ["--logdir", str(launch.run_folder())]
    assert launch.left() == []


def test_a_run_without_summaries_is_refused_with_its_host(launch: Launcher) -> None:
    launch.write()
    launch("up")
    ran = launch("board")
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith(f"localhost: {launch.run_folder().name} has no summaries in ")
