"""The network cable between a fake host and the switch: a veth pair."""

from typing import List, Optional

from tests.support.hosts import tool
from tests.support.hosts.rack import Rack


class Cable:
    """The cable of the host at place ``index`` (from 0). State outlives the host's power."""

    def __init__(self, rack: Rack, index: int):
        self.plugged = True
        self.mbit: Optional[float] = None
        self._rack = rack
        self._port = f"port{index + 1}"
        # A network card keeps its address over a reboot; a new one would be unknown to the peers' ARP tables.
        self._mac = f"02:77:{rack.number:02x}:00:00:{index + 1:02x}"

    def lay(self, init: int) -> str:
        """The lines of ``ip -batch`` that lead from the switch to the host with this first process."""
        return (
            f"link add {self._port} type veth peer name eth0 address {self._mac} netns {init}\n"
            f"link set {self._port} master switch addrgenmode none\n" + self._state()
        )

    def cut(self) -> None:
        """Takes the cable away for good, or until it is laid anew."""
        self._rack.links(f"link delete {self._port}\n")

    def apply_state(self) -> None:
        """Makes the switch's side follow ``plugged``."""
        self._rack.links(self._state())

    def apply_rate(self, init: int) -> None:
        """Makes both ends follow ``mbit``."""
        if self.mbit is not None:
            queue = ["root", *_bucket(self.mbit)]
            tool.network(self._rack.pid, ["tc", "qdisc", "replace", "dev", self._port, *queue])
            tool.network(init, ["tc", "qdisc", "replace", "dev", "eth0", *queue])
        else:
            tool.network(self._rack.pid, ["tc", "qdisc", "delete", "dev", self._port, "root"])
            tool.network(init, ["tc", "qdisc", "delete", "dev", "eth0", "root"])

    def _state(self) -> str:
        return f"link set {self._port} {'up' if self.plugged else 'down'}\n"


def _bucket(mbit: float) -> List[str]:
    """Token bucket options; it holds 4 ms' worth, as less is not refilled in time at a kernel clock of 250 Hz."""
    burst_bytes = int(max(mbit * 1e6 / 8 * 0.004, 32768))
    return ["tbf", "rate", f"{int(mbit * 1e6)}bit", "burst", f"{burst_bytes}b", "latency", "50ms"]
