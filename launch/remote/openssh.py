"""The launcher's connection as commands of OpenSSH's client, which a person can copy; they reach the same host."""

import os
import shlex
from typing import List, NamedTuple

from cluster.spec.model import Ssh

# OpenSSH shows the key, asks, and records the key under the name of its lookup, also with an alias, a port or a
# gateway. OpenSSH then reads only the file that the launcher reads, and opens a new connection.
_ASKS = "StrictHostKeyChecking=ask", "GlobalKnownHostsFile=/dev/null", "ControlPath=none"


class ByHand(NamedTuple):
    """One host's connection.

    Attributes:
      name: the host's name in the SSH configuration.
      jump: the gateways before the host that the configuration does not name; "" for none.
      entry: the host's name among the known hosts.
    """

    name: str
    user: str
    port: int
    jump: str
    entry: str
    settings: Ssh

    def login(self) -> str:
        """Return the command with the same login as the launcher's."""
        known = [] if self.settings.known_hosts == Ssh.known_hosts else self._known()
        return _line(["ssh", *known, *self._options(), self.name])

    def accept(self) -> str:
        """Return the command that shows the host's key, and records it if the person agrees."""
        asks = [word for each in _ASKS for word in ("-o", each)]
        return _line(["ssh", *asks, *self._known(), *self._options(), self.name, "true"])

    def forget(self) -> str:
        """Return the command that removes the recorded key."""
        return _line(["ssh-keygen", "-R", self.entry, "-f", os.path.expanduser(self.settings.known_hosts)])

    def _known(self) -> List[str]:
        known = os.path.expanduser(self.settings.known_hosts)
        return ["-o", f'UserKnownHostsFile="{known}"' if " " in known else f"UserKnownHostsFile={known}"]

    def _options(self) -> List[str]:
        config, key = self.settings.config, self.settings.key
        # The default configuration needs no option; without a configuration, OpenSSH must read none either.
        named = [] if config == Ssh.config else ["-F", os.path.expanduser(config) if config else "none"]
        jump = ["-J", self.jump] if self.jump else []
        chosen = ["-i", os.path.expanduser(key)] if key else []
        return [*named, *jump, *chosen, "-l", self.user, "-p", str(self.port)]


def _line(words: List[str]) -> str:
    return " ".join(map(shlex.quote, words))
