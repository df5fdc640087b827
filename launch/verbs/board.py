"""``launch board``: TensorBoard on the chief's host, and a tunnel to it from a port of this machine."""

import contextlib
import http.client
import socket
import socketserver
import threading
import time
from typing import Any, Callable, Dict, Optional

import click

from launch.errors import SUCCEEDED, CannotStart, HostProblem, ProblemKind
from launch.fleet import Fleet
from launch.history import locate
from launch.hosts.channel import CHUNK, Silence
from launch.hosts.conversation import Conversation
from launch.target import Target
from launch.verbs.options import OF_RUN, port_option, with_hosts_file
from launch.view.console import say

Dial = Callable[[], Any]  # a connection with the methods of a socket; raises HostProblem


class _BoardServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


class Tunnel:
    """A listener on 127.0.0.1 inside a ``with`` block; it joins each connection to a new connection from ``dial``.

    Args:
      port: 0 chooses a free port; ``Tunnel.port`` has the chosen port.

    Raises:
      CannotStart: the port is taken.
    """

    def __init__(self, dial: Dial, port: int):
        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                _join(self.request, dial)

        try:
            self._server = _BoardServer(("127.0.0.1", port), Handler)
        except OSError as error:
            taken = HostProblem.here(f"cannot listen on port {port}: {error.strerror}", "give another --port")
            raise CannotStart([taken]) from error
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> "Tunnel":
        threading.Thread(target=self._server.serve_forever, daemon=True, name="tunnel").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _join(near: Any, dial: Dial) -> None:
    with contextlib.suppress(HostProblem):  # the caller sees its connection end
        far = dial()
        with contextlib.closing(far):
            back = threading.Thread(target=_copy, args=(far, near), daemon=True, name="tunnel back")
            back.start()
            _copy(near, far)
            back.join()


def _copy(source: Any, target: Any) -> None:
    """Copy bytes until ``source`` ends, then shut down the sending side of ``target``."""
    with contextlib.suppress(OSError):  # either side may close at any time
        while True:
            data = source.recv(CHUNK)
            if not data:
                break
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


BEAT_S = 1.0
START_S = 60.0
ANSWER_S = 30.0


class Board:
    """TensorBoard on the host with the summaries of the newest run, inside a ``with`` block.

    In the block, ``run`` is the run's name, and ``dial`` connects to TensorBoard.

    Raises:
      HostProblem: TensorBoard cannot run on that host, or has ended.
      Interrupted: a signal came before TensorBoard was ready.
    """

    def __init__(self, fleet: Fleet):
        self._fleet, self._lead = fleet, fleet.lead
        self._conversation: Conversation
        self.run = ""
        self._port = 0

    def __enter__(self) -> "Board":
        self._conversation = self._fleet.contact(self._lead, "board", self._fleet.reference(self._lead))
        try:
            place = self._place()
        except BaseException:
            self._conversation.close()
            raise
        self.run, self._port = place["run"], place["port"]
        return self

    def __exit__(self, *_: object) -> None:
        self._conversation.close()

    def dial(self) -> Any:
        """Return a connection to TensorBoard, with the methods of a socket."""
        return self._fleet.hosts[self._lead].dial(self._port)

    def stay(self) -> None:
        """Keep TensorBoard alive until a signal comes."""
        while not self._fleet.interrupts.received:
            self._word()

    def _place(self) -> Dict[str, Any]:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            self._fleet.interrupts.check()
            word = self._word()
            if word is not None:
                return word
        raise HostProblem(self._lead, ProblemKind.SILENT, f"TensorBoard did not listen within {START_S:.0f} s")

    def _word(self) -> Optional[Dict[str, Any]]:
        """Send a beat, and return the answer; None where no answer comes in time."""
        lost = self._beat()
        try:
            word = self._conversation.receive(BEAT_S)  # a program that has ended may have sent the reason before
        except Silence:
            if lost is not None:
                raise lost from None
            return None
        if word is None:
            raise lost or self._conversation.end_problem()
        return word

    def _beat(self) -> Optional[HostProblem]:
        """Send a beat; return the problem where sending fails."""
        try:
            self._conversation.send({"beat": True})
        except HostProblem as problem:
            return problem
        return None


def must_answer(port: int) -> None:
    """Request TensorBoard's page as a browser would.

    Raises:
      HostProblem: nothing answers at this port of this machine, or the answer's status is not OK.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)
    try:
        connection.request("GET", "/")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise HostProblem.here(f"TensorBoard does not answer at port {port}: {error!r}") from error
    finally:
        connection.close()
    if status != http.HTTPStatus.OK:
        raise HostProblem.here(f"TensorBoard answers at port {port} with the status {status}")


@click.command()
@with_hosts_file
@OF_RUN
@port_option()
def board(target: Target, port: int) -> int:
    """Open TensorBoard on the newest run's summaries, until Ctrl-C.

    TensorBoard runs on the chief's host, which has the summaries, and ends with this command.
    The page reaches this machine through the launcher's own connection to the host.

    \b
    Example:  launch board hosts.yaml --port 6006
    """
    with target.reach() as fleet:
        locate(fleet)
        with Board(fleet) as shown:
            shown.dial().close()
            with Tunnel(shown.dial, port) as tunnel:
                must_answer(tunnel.port)
                say(f"{shown.run}: http://127.0.0.1:{tunnel.port}/ (Ctrl-C ends it)")
                shown.stay()
        return fleet.interrupts.exit_code(otherwise=SUCCEEDED)
