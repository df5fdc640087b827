"""One fake host: its power and its cable, and everything from its console."""

import os
import signal
import time
from typing import Optional, Sequence

from tests.support.hosts.boot import TIMEOUT_S, Boot
from tests.support.hosts.cable import Cable
from tests.support.hosts.console import Console
from tests.support.hosts.errors import HostError
from tests.support.hosts.rack import Rack


class Host(Console):
    """``name``, ``address``: as the other hosts and the generated ssh configuration know it."""

    def __init__(self, rack: Rack, index: int, name: str, address: str, visible: Sequence[str] = ()):
        self.name = name
        self.address = address
        self._rack = rack
        self._visible = visible
        self._cable = Cable(rack, index)
        self._boot: Optional[Boot] = None
        self._init = 0

    def init(self) -> int:
        """Process 1 of the host, as this machine numbers it. Raises HostError while it is powered off."""
        if not self.powered:
            raise HostError(f"{self.name}: expected a running host, found it powered off; call power_on() first")
        return self._init

    @property
    def powered(self) -> bool:
        """Whether the host has been switched on and not been cut off, or died, since."""
        return self._boot is not None and self._boot.running

    def power_cut(self) -> None:
        """Ends everything on the host at once; nothing says goodbye to its peers."""
        # The cable goes first: the kernel closes a killed process's connections, and the peers would hear it.
        if self.powered:
            self._cable.cut()
            os.kill(self._init, signal.SIGKILL)
        self.reap()

    def power_on(self) -> None:
        """Boots again: same address, keys and files; only /tmp, /run and /dev/shm are empty."""
        power_on(self._rack, [self])

    def unplug(self) -> None:
        """Pulls the network cable: packets vanish both ways, without an answer."""
        self._plug(False)

    def plug(self) -> None:
        """Puts the network cable back."""
        self._plug(True)

    def _plug(self, plugged: bool) -> None:
        self._cable.plugged = plugged
        if self.powered:
            self._cable.apply_state()

    def shape(self, mbit: float) -> None:
        """Limits the host's network to ``mbit`` Mbit/s each way."""
        self._shape(mbit)

    def unshape(self) -> None:
        """Takes the limit of ``shape`` away."""
        if self._cable.mbit is not None:
            self._shape(None)

    def _shape(self, mbit: Optional[float]) -> None:
        self._cable.mbit = mbit
        if self.powered:
            self._cable.apply_rate(self._init)

    def start(self) -> Boot:
        """First step of booting; the host goes on by itself."""
        self._boot = Boot(self._rack, self.name, self.address, self._visible)
        return self._boot

    def cable(self, init: int) -> str:
        """Second step: what the switch is to do for the started host, as lines of ``ip -batch``."""
        self._init = init
        return self._cable.lay(init)

    def finish(self, boot: Boot, deadline: float) -> None:
        """Last step, once the host may go on: returns when sshd answers, sooner where the cable is unplugged."""
        boot.up(deadline)
        if self._cable.mbit is not None:
            self._cable.apply_rate(self._init)
        if self._cable.plugged:
            boot.answers(deadline)

    def reap(self) -> None:
        """Waits for the end of a host that is down, or comes down with its rack."""
        if self._boot is not None:
            self._boot.reap()
        self._boot, self._init = None, 0


def power_on(rack: Rack, hosts: Sequence[Host]) -> None:
    """Boots hosts side by side and returns when every sshd answers.

    Raises:
      HostError: one did not boot; the message says which and why.
    """
    deadline = time.monotonic() + TIMEOUT_S
    boots = [(host, host.start()) for host in hosts if not host.powered]
    rack.links("".join(host.cable(boot.init(deadline)) for host, boot in boots))
    for _, boot in boots:
        boot.go_on()
    for host, boot in boots:
        host.finish(boot, deadline)
