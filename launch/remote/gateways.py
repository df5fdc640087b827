"""Gateways to other hosts: each gateway is opened once, and all hosts behind it share the connection.

Some gateways, such as those of Dropbear, limit the number of channels of a connection. Further hosts then share a
second connection, and so on.

A gateway's failure is one problem, for any number of hosts behind the gateway. All these hosts have the same problem,
which names the gateway.
"""

import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from launch.errors import HostProblem, ProblemKind

FRESH_S = 5.0  # the time for which a failure is kept before a gateway is tried again

Route = Tuple[str, ...]
Open = Callable[[str, Optional[Any]], Any]  # takes a host's name and the connection through which to reach it


class Gateway:
    """One gateway, which may be behind other gateways."""

    def __init__(self, open_it: Callable[[], Any], hang_up: Callable[[Any], None]):
        self._open_it, self._hang_up = open_it, hang_up
        self._lock = threading.Lock()
        self._connection: Optional[Any] = None
        self._problem: Optional[HostProblem] = None
        self._failed_at = 0.0

    def connection(self) -> Any:
        """Return the gateway's connection; the first caller opens it, and the others wait.

        Raises:
          HostProblem: the gateway cannot be reached.
        """
        with self._lock:
            if self._problem is not None and time.monotonic() - self._failed_at < FRESH_S:
                raise self._problem
            if self._connection is None or not self._connection.is_connected:
                self._connection = self._opened()
            return self._connection

    def holds(self, connection: Any) -> bool:
        """Return whether ``connection`` is the gateway's connection."""
        return self._connection is connection

    def _opened(self) -> Any:
        try:
            self._problem = None
            return self._open_it()
        except HostProblem as problem:
            self._problem, self._failed_at = problem, time.monotonic()
            raise

    def close(self) -> None:
        """End the gateway's connection."""
        with self._lock:
            if self._connection is not None:
                self._hang_up(self._connection)


class Gateways:
    """Every gateway of a run.

    Args:
      open_one: opens a connection to a host, through another connection if given.
      jumps: returns the gateways before a host in the SSH configuration, nearest to this machine first: ``a,user@b``;
        its second argument is False for a host that is itself a gateway.
      hang_up: ends a connection, and the ProxyCommand that carries it, if any.
    """

    def __init__(self, open_one: Open, jumps: Callable[[str, bool], str], hang_up: Callable[[Any], None]):
        self._open_one, self._jumps, self._hang_up = open_one, jumps, hang_up
        self._lock = threading.Lock()
        self._opened: Dict[Route, Gateway] = {}
        self._full: List[Gateway] = []

    def route(self, name: str, written: Optional[str] = None, seen: Route = ()) -> Route:
        """Return the gateways before a host, in the order of the connection.

        The first gateway may itself be behind gateways.

        Args:
          written: the gateways that replace those in the SSH configuration.

        Raises:
          HostProblem: the gateways form a circle.
        """
        words = (word.strip() for word in (written or self._jumps(name, not seen)).split(","))
        hops = tuple(word for word in words if word.lower() not in ("", "none"))
        if not hops or name in hops:  # a gateway that is its own gateway is reached directly
            return ()
        if hops[0] in seen:
            circle = ", ".join((*seen, name, hops[0]))
            raise HostProblem(
                name,
                ProblemKind.GATEWAY,
                f"its gateways form a circle: {circle}",
                advice="correct ssh.gateway, or ProxyJump in the SSH configuration",
            )
        return (*self.route(hops[0], seen=(*seen, name)), *hops)

    def last(self, route: Route) -> Optional[Any]:
        """Return the connection to the last gateway of a route; None for a route without gateways.

        Raises:
          HostProblem: a gateway cannot be reached.
        """
        if not route:
            return None
        with self._lock:
            gateway = self._opened.setdefault(route, Gateway(lambda: self._open(route), self._hang_up))
        return gateway.connection()

    def further(self, route: Route, full: Any) -> Any:
        """Return another connection to the last gateway of a route, because ``full`` opens no more channels.

        Raises:
          HostProblem: a gateway cannot be reached.
        """
        with self._lock:
            if self._opened[route].holds(full):
                self._full.append(self._opened.pop(route))
        return self.last(route)

    def _open(self, route: Route) -> Any:
        before = self.last(route[:-1])
        try:
            return self._open_one(route[-1], before)
        except HostProblem as problem:
            raise problem.with_advice("it is the gateway to other hosts") from problem

    def close(self) -> None:
        """End the gateways' connections, the farthest first."""
        for gateway in self._full:
            gateway.close()
        for route in sorted(self._opened, key=len, reverse=True):
            self._opened[route].close()
