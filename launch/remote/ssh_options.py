"""The options of the SSH configuration for each host, as OpenSSH's own client reads them.

``ssh -G HOST`` prints them, so ``Include``, ``Match`` and quotation marks mean what they mean to ``ssh HOST``. Where
this machine has no ``ssh``, Paramiko reads the file. A line that Paramiko may read in another way is refused.
"""

import os
import pwd
import re
import shlex
import shutil
import socket
import subprocess
from typing import Any, Dict, List, Mapping, Optional, Tuple

import paramiko

from launch.errors import HostProblem
from launch.openssh.ssh_program import configuration

_KEYS = "identityfile"
_USED = (
    _KEYS, "hostname", "user", "port", "proxycommand", "proxyjump", "hostkeyalias", "identitiesonly", "identityagent",
    "userknownhostsfile", "globalknownhostsfile",
)  # fmt: skip
_TOKEN = re.compile(r"%(.)")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


class OneHost(paramiko.SSHConfig):  # type: ignore[misc]
    """A configuration for one connection of Fabric: the options of the dialled host, whatever name Fabric looks up."""

    def __init__(self, options: Mapping[str, Any]):
        super().__init__()
        self._options = dict(options)

    def lookup(self, hostname: str) -> Dict[str, Any]:
        """Return the options of the one host."""
        return self._options


class SshOptions:
    """The options for hosts; ``ssh -G`` runs once for each host. Several threads may use the object at the same time.

    Args:
      path: the path of the configuration file; None for no configuration.
      bound_s: the most seconds to wait for ``ssh -G``, because a ``Match exec`` may run any command.
    """

    def __init__(self, path: Optional[str], bound_s: float):
        self._path, self._bound_s = path, bound_s
        self._client = shutil.which("ssh")
        self._known: Dict[Tuple[str, ...], Dict[str, Any]] = {}

    def about(self, host: str, user: Optional[str] = None, port: Optional[int] = None) -> Mapping[str, Any]:
        """Return the options for a host, by their names in lower case; paths and commands are expanded.

        ``identityfile`` is a list. An option that OpenSSH would have without any configuration,
        such as the usual identity files, is left out.

        Args:
          user, port: the arguments for ``ssh -l`` and ``ssh -p``.

        Raises:
          HostProblem: OpenSSH refuses the configuration, or does not answer in time.
        """
        words = [*(["-l", user] if user else []), *(["-p", str(port)] if port else [])]
        if self._client is None:
            return self._read(host)
        usual = self._asked(["-F", "none"], "localhost")
        found = {key: value for key, value in self._asked([*configuration(self._path), *words], host).items()
                 if key in ("hostname", "user", "port") or value != usual.get(key)}  # fmt: skip
        return {key: _expanded(key, value, host, found) for key, value in found.items()}

    def _asked(self, words: List[str], host: str) -> Dict[str, Any]:
        key = (*words, host)
        if key not in self._known:
            self._known[key] = _parsed(self._answer(words, host))
        return self._known[key]

    def _answer(self, words: List[str], host: str) -> str:
        argv = [str(self._client), "-G", *words, "--", host]
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=self._bound_s, check=False
            )
        except subprocess.TimeoutExpired:
            text = f"expected an answer of `ssh -G {host}` within {self._bound_s:g} s, found none"
            raise HostProblem.here(text, advice="look for Match exec in the SSH configuration") from None
        except OSError as error:
            raise HostProblem.here(f"cannot start {argv[0]}: {error.strerror}") from error
        if done.returncode:
            shown = " ".join(map(shlex.quote, ["ssh", *words, "-G", host]))
            why = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
            raise HostProblem.here(f"the SSH configuration: {why[0]}", advice=f"correct it; see `{shown}`")
        return done.stdout.decode(errors="replace")

    def _read(self, host: str) -> Dict[str, Any]:
        path = os.path.expanduser(self._path) if self._path else ""
        text = "".join(plain_lines(path)) if os.path.isfile(path) else ""
        return dict(paramiko.SSHConfig.from_text(text).lookup(host))


def _parsed(answer: str) -> Dict[str, Any]:
    """Return the options of an answer of ``ssh -G`` that this package uses."""
    found: Dict[str, Any] = {}
    for line in answer.splitlines():
        key, _, value = line.partition(" ")
        if key == _KEYS:
            found.setdefault(key, []).append(value)
        elif key in _USED and (value != "none" or key == "identityagent"):
            found[key] = value.replace("ssh://", "") if key == "proxyjump" else value
    return found


def _expanded(key: str, value: Any, host: str, options: Mapping[str, Any]) -> Any:
    """Return a value with its tokens expanded, which ``ssh -G`` leaves in commands and in key files."""
    if key == "proxycommand":
        return _with_tokens(value, host, options)
    if key == _KEYS:
        return [_with_tokens(os.path.expanduser(_with_variables(path)), host, options) for path in value]
    return value


def _with_variables(path: str) -> str:
    return _VARIABLE.sub(lambda found: os.environ.get(found[1], ""), path)


def _with_tokens(text: str, host: str, options: Mapping[str, Any]) -> str:
    """Expand the tokens of ssh_config(5) that keys and commands may have; leave others as they are."""
    here = socket.gethostname()
    tokens = {
        "%": "%", "d": os.path.expanduser("~"), "h": options["hostname"], "i": str(os.getuid()),
        "k": options.get("hostkeyalias", host), "L": here.partition(".")[0], "l": here, "n": host, "p": options["port"],
        "r": options["user"], "u": pwd.getpwuid(os.getuid()).pw_name,
    }  # fmt: skip
    return _TOKEN.sub(lambda found: tokens.get(found[1], found[0]), text)


_PLAIN = re.compile(r"""\s*(#.*|(?P<key>\w+)(\s*=\s*|\s+)(?P<value>[^"'#$\\]*[^"'#$\\\s]))?\s*$""")


def plain_lines(path: str) -> List[str]:
    """Return the lines of a configuration that Paramiko reads as OpenSSH does.

    Raises:
      HostProblem: OpenSSH may read a line in another way; the text has the file and the line's number.
    """
    with open(path, errors="replace") as file:
        lines = file.readlines()
    for number, line in enumerate(lines, 1):
        found = _PLAIN.match(line)
        if found is None or (found["key"] or "").lower() in ("match", "include", "canonicalizehostname"):
            text = (
                f"{path}:{number}: expected plain options under Host, because this machine has no `ssh` to read others"
            )
            raise HostProblem.here(f"{text}, found {line.strip()!r}", advice="install the OpenSSH client")
    return lines
