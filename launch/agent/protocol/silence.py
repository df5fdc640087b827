"""The silence of hosts, and of the launcher: the times for which the lead has received nothing from them.

A member kills its tasks when the lead has received nothing from the member for ``lost_after_s``. The lead counts the
host as lost only a margin later. So tasks that the lead then starts elsewhere never run together with the lost host's
tasks.

    silent    the host has no link; the silence began when the link broke, or, without any link so far,
              ``UNSEEN_S`` after the beginning
    lost      the host had a link, and the lead received nothing from the host for ``lost_after_s``
              and the margin; the host is reported once
"""

import math
from typing import Container, Dict, List, Mapping, Optional, Sequence

from launch.agent.protocol.messages import Lost

MARGIN_SHARE = 0.3  # of lost_after_s: for a member's last poll, and for clocks that run at slightly different rates
UNSEEN_S = 2.0  # a member's first link arrives sooner
WAKING_S = 3.0  # the launcher beats every second
_JUMP_S = 0.5  # the least suspension that counts
Moment = Sequence[float]  # the seconds on a clock that stops during a suspension, and the seconds since the boot


class Silences:
    """The silences of ``hosts``: since when the lead has received nothing, in seconds on the lead's clock.

    ``patience`` has, by host, the seconds of silence after which a host that may boot counts as lost.
    """

    def __init__(
        self, hosts: Sequence[str], lost_after_s: float, now: float, patience: Optional[Mapping[str, float]] = None
    ):
        self.hosts, self.lost_after_s, self._patience = hosts, lost_after_s, patience or {}
        self._unseen: Dict[str, float] = dict.fromkeys(hosts, now + UNSEEN_S)  # {host: when its silence begins}
        self._since: Dict[str, float] = {}  # {host: when its last message arrived}
        self._reported: Dict[str, None] = {}  # the lost hosts, in the order of their losses

    def end(self, host: str) -> None:
        """End the silence of a host: the host has a link."""
        for gone in (self._unseen, self._since, self._reported):
            gone.pop(host, None)  # type: ignore[attr-defined]

    def begin(self, host: str, at: float) -> None:
        """Begin the silence of a host: its link broke. ``at`` is the time of the host's last message."""
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
        """Return the hosts that have become lost since the last call.

        ``spared`` has hosts that do not count as lost: their new links are about to be admitted. If
        ``awaits_boots`` is False, no host gets extra time for a boot.
        """
        usual_s, patience = self.lost_after_s * (1 + MARGIN_SHARE), self._patience if awaits_boots else {}
        late = [host for host, since in self._since.items() if now - since > patience.get(host, usual_s)]
        found = [Lost(host, now - self._since[host]) for host in late if host not in spared]
        for each in found:
            del self._since[each.host]
            self._reported[each.host] = None
        return found


class LauncherSilence:
    """The silence of the launcher, including the time for which the lead's machine was suspended.

    A launcher on another machine continues to count during a suspension: it gives the run up, and may start the run's
    successor elsewhere. A launcher on the same machine was suspended, too, and sends messages again afterwards. So for
    ``WAKING_S`` after a suspension, only the time awake counts.

    A message may arrive late: after a suspension of this machine, those of its beginning do, from a launcher that has
    given the run up. So a beat names the moment of the newest answer that the launcher had received, and the silence
    begins there.

    Times are pairs: seconds on a clock that stops during a suspension, and seconds since the machine booted.
    ``slept_s`` is the part of the silence for which the machine was suspended.
    """

    def __init__(self, now: float, since_boot: float):
        self.renew(now, since_boot)

    def renew(self, now: float, since_boot: float, pauses: bool = False) -> None:
        """Record a message of the launcher; with ``pauses``, no silence counts until the next message."""
        self._heard_at, self._woken_at = math.inf if pauses else now, -math.inf
        self._apart, self.slept_s = since_boot - now, 0.0

    def confirm(self, heard: Optional[Moment], now: float, since_boot: float) -> None:
        """Record a beat of a launcher that had received what was sent at the moment ``heard``; None for nothing yet.

        The first beat after a pause counts as new.
        """
        if self._heard_at == math.inf:
            self.renew(now, since_boot)
        elif heard is not None and heard[0] > self._heard_at:
            self._heard_at, apart = heard[0], heard[1] - heard[0]
            if apart > self._apart + _JUMP_S:  # the launcher has received something since the suspension
                self._apart, self._woken_at, self.slept_s = apart, -math.inf, 0.0

    def length_s(self, now: float, since_boot: float) -> float:
        """Return the seconds since the launcher's last message."""
        elsewhere_s = self.elsewhere_s(now, since_boot)
        return elsewhere_s - self.slept_s if now - self._woken_at < WAKING_S else elsewhere_s

    def elsewhere_s(self, now: float, since_boot: float) -> float:
        """Return the seconds since the launcher's last message, as a launcher on another machine counts them."""
        slept_s = since_boot - now - self._apart
        if slept_s > self.slept_s + _JUMP_S:
            self.slept_s, self._woken_at = slept_s, now
        return now - self._heard_at + self.slept_s
