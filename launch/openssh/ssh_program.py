"""One process ``ssh`` to one host: its command, its environment, and the same command for a person to copy."""

import math
import os
import pwd
import shlex
from dataclasses import replace
from typing import Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence

from cluster.spec.model import Ssh

KEEPALIVE_S, KEEPALIVES = 5, 3
# Nothing here asks a person, forwards the user's keys or ports, or runs what the configuration adds to a login.
_FIXED = (
    "BatchMode=yes", "ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "PermitLocalCommand=no",
    "RemoteCommand=none", "ControlPersist=no", f"ServerAliveInterval={KEEPALIVE_S}",
    f"ServerAliveCountMax={KEEPALIVES}",
)  # fmt: skip
_ASKS = "StrictHostKeyChecking=ask", "ControlPath=none"
NEVER_ASK = {"SSH_ASKPASS_REQUIRE": "never"}  # a gateway's ssh has no BatchMode


def configuration(path: Optional[str]) -> List[str]:
    """Return the options of ``ssh`` for the configuration ``path``. ``~`` means ``$HOME``, which OpenSSH ignores."""
    home = pwd.getpwuid(os.getuid()).pw_dir
    if path == Ssh.config and os.path.expanduser("~") == home:
        return []  # with the machine's own configuration
    full = os.path.expanduser(path) if path else "none"
    return ["-F", full if os.path.isfile(full) else "none"]


def gateways_before(name: str, gateway: Optional[str]) -> List[str]:
    """Return the gateways of ``ssh.gateway`` that lead to a host; the host itself may be one of the gateways."""
    hops = [hop.strip() for hop in (gateway or "").split(",")]
    return hops[: hops.index(name)] if name in hops else [hop for hop in hops if hop]


def environment(environ: Mapping[str, str], secrets: Collection[str]) -> Dict[str, str]:
    """Return the environment of every ``ssh``: without secrets, which SendEnv might send."""
    return {**{name: value for name, value in environ.items() if name not in secrets}, **NEVER_ASK}


def quoted(path: str) -> str:
    """Return a path as a value of OpenSSH's configuration."""
    return f'"{path}"' if " " in path else path


class SshProgram(NamedTuple):
    """The ``ssh`` commands for one host."""

    name: str
    settings: Ssh

    def argv(self, command: str, *options: str, level: str = "ERROR") -> List[str]:
        """Return the argv that runs a command line on the host.

        Args:
          options: further options, which override the others.
          level: LogLevel; from INFO on, ``ssh`` also names a connection that ended, and prints banners.
        """
        wait = f"ConnectTimeout={math.ceil(self.settings.connect_timeout_s)}"
        fixed = _options([*options, *_FIXED, wait, f"LogLevel={level}"])
        return ["ssh", "-T", *fixed, *self._chosen(), "--", self.name, command]

    def check(self) -> List[str]:
        """Return the argv that succeeds where the user has opened a ControlMaster to the host."""
        return ["ssh", *self._chosen(), "-O", "check", "--", self.name]

    def login(self, *options: str) -> str:
        """Return the command with which a person logs in as the launcher does."""
        return " ".join(map(shlex.quote, ["ssh", *options, *self._chosen(), self.name]))

    def accept(self, known: str = "") -> str:
        """Return the command that shows the keys of the host and its gateways, and records them if the person agrees.

        On the host, the command runs only ``true``.

        Args:
          known: the only file of known hosts for the host; "" for those of OpenSSH.
        """
        if not known:
            return f"{self.login(*_options(_ASKS))} true"
        only = "GlobalKnownHostsFile=/dev/null", f"UserKnownHostsFile={quoted(os.path.expanduser(known))}"
        others = self._replace(settings=replace(self.settings, known_hosts=Ssh.known_hosts))
        return f"{others.login(*_options([*_ASKS, *only]))} true"

    def _chosen(self) -> List[str]:
        """Return the options that the hosts file chooses; for all others, ``ssh`` has its configuration."""
        settings = self.settings
        known = quoted(os.path.expanduser(settings.known_hosts))
        jump = ",".join(gateways_before(self.name, settings.gateway))
        return [
            *(_options([f"UserKnownHostsFile={known}"]) if settings.known_hosts != Ssh.known_hosts else []),
            *configuration(settings.config),
            *(["-J", jump] if jump else []),
            *(["-i", os.path.expanduser(settings.key)] if settings.key else []),
            *(["-l", settings.user] if settings.user else []),
            *(["-p", str(settings.port)] if settings.port else []),
        ]


def forget(entry: str, file: str) -> str:
    """Return the command that removes the key of a host from a file of known hosts."""
    return " ".join(map(shlex.quote, ["ssh-keygen", "-R", entry, "-f", os.path.expanduser(file)]))


def _options(values: Sequence[str]) -> List[str]:
    return [word for value in values for word in ("-o", value)]
