"""The hosts from which the lead receives nothing: the silent ones, and the lost.

A member kills its tasks when the lead has received nothing from it for ``lost_after_s``. The lead
takes a host for lost only a margin later. So the tasks that the lead then starts elsewhere never
meet those of the lost host.

    silent    it has no link; from the moment its link broke, or ``UNSEEN_S`` after the beginning
              where it never had one
    lost      it had a link, and the lead received nothing from it for ``lost_after_s`` and the
              margin; reported once
"""

from typing import Container, Dict, List, Mapping, Optional, Sequence

from launch.agent.protocol.messages import Lost

MARGIN_SHARE = 0.3  # of lost_after_s: for a member's last poll, and for clocks that run a little apart
UNSEEN_S = 2.0  # a member's first link comes sooner than that


class Silences:
    """The silences of ``hosts``. Times are seconds on the lead's clock.

    ``patience`` has the seconds after which a host is lost that is to come back from a boot.
    """

    def __init__(
        self, hosts: Sequence[str], lost_after_s: float, now: float, patience: Optional[Mapping[str, float]] = None
    ):
        self.hosts, self.lost_after_s, self._patience = hosts, lost_after_s, patience or {}
        self._unseen: Dict[str, float] = dict.fromkeys(hosts, now + UNSEEN_S)  # {host: when that is a silence}
        self._since: Dict[str, float] = {}  # {host: when its last message came}
        self._reported: Dict[str, None] = {}  # the lost ones, in the order in which they were

    def end(self, host: str) -> None:
        """Record that a host has a link."""
        for gone in (self._unseen, self._since, self._reported):
            gone.pop(host, None)  # type: ignore[attr-defined]

    def begin(self, host: str, at: float) -> None:
        """Record that a host's link broke; ``at`` is the time of its last message."""
        if host not in self._reported:
            self._since.setdefault(host, at)

    def length_s(self, host: str, now: float) -> float:
        """Return the seconds for which a host that had a link has been silent.

        The result is 0 where the host is not silent.
        """
        return now - self._since.get(host, now)

    def silent(self, now: float) -> List[str]:
        """Return the hosts that are silent, in order of their names."""
        unseen = [host for host, late in self._unseen.items() if now >= late]
        return sorted([*unseen, *self._since, *self._reported])

    def newly_lost(self, now: float, spared: Container[str] = (), awaits_boots: bool = True) -> List[Lost]:
        """Return the hosts that are lost since the last call.

        ``spared`` has the hosts whose new link is just coming. Without ``awaits_boots`` no host has more time than its
        tasks may live.
        """
        usual_s, patience = self.lost_after_s * (1 + MARGIN_SHARE), self._patience if awaits_boots else {}
        late = [host for host, since in self._since.items() if now - since > patience.get(host, usual_s)]
        found = [Lost(host, now - self._since[host]) for host in late if host not in spared]
        for each in found:
            del self._since[each.host]
            self._reported[each.host] = None
        return found
