"""The unit by which systemd restarts the agent of a detached run after a boot of its host.

A user who *lingers* (``loginctl enable-linger``) has a user manager from boot on, which starts the units below
``default.target.wants`` in the user's own folder. ``systemctl --user enable`` only writes two files there. Writing them
needs no running manager, so an agent that was started by SSH can write them. The agent removes the unit when its part
of the run is over.

The unit's own environment is nearly empty. boot.json stores the agent's environment and the request, unreadable for
other users; the agent removes it with the unit. Many hosts may share a home folder, so the unit names its host.
"""

import contextlib
import os
import pwd
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import List, Mapping, Optional

from cluster.protocol.typed_json import to_values
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest

BOOT = "boot.json"
LOADS = ("LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH")  # variables that Python itself may need to start
OF_A_SESSION = ("SSH_", "XDG_", "DBUS_")  # variables that mean nothing after a boot
BOOTED = Path("/run/systemd/system")  # exists where systemd is process 1
ANSWER_S = 2.0  # of systemctl
GOING_DOWN = (Path("/run/nologin"), Path("/run/systemd/shutdown/scheduled"))
LINGERING = Path("/var/lib/systemd/linger")
MANAGERS = Path("/run/user")

UP = ("running", "degraded", "starting", "initializing", "maintenance")  # states of a machine that is not shutting down

# systemd retries a failed start, since a folder may be mounted late. A task that is killed for memory does not end the
# unit.
UNIT = """\
[Unit]
Description=launch: the agent of {run} on {host}
ConditionHost={machine}
StartLimitIntervalSec=1200
StartLimitBurst=100

[Service]
Type=forking
GuessMainPID=no
WorkingDirectory={code}
{environment}ExecStart={python} -m launch.agent return {own}
TimeoutStartSec=300
Restart=on-failure
RestartSec=5
OOMPolicy=continue
Delegate=yes
TasksMax=infinity

[Install]
WantedBy=default.target
"""


def obstacle() -> Optional[str]:
    """Return the reason why a boot of this host would not start an agent; None where a boot would start one."""
    if not BOOTED.is_dir():
        return "has no systemd"
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user id {os.getuid()} has no name"
    if not (LINGERING / user).exists():
        return f"{user} does not linger there (`loginctl enable-linger`)"
    if not (MANAGERS / str(os.getuid()) / "systemd").is_dir():  # as in CentOS 7, or where an administrator forbids it
        return f"systemd has no manager for {user} there"
    return None


def is_going_down() -> bool:
    """Return whether this machine is about to stop."""
    try:
        asked = ["systemctl", "is-system-running"]
        ran = subprocess.run(asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=ANSWER_S)
    except (OSError, subprocess.TimeoutExpired):
        return any(path.exists() for path in GOING_DOWN)
    return ran.stdout.decode(errors="replace").strip() not in UP


@dataclass(frozen=True)
class KeptBoot:
    """The content of boot.json: the request to the next agent, and its environment variables."""

    request: RunRequest
    environment: Mapping[str, str]


def write(folder: RunFolder, request: RunRequest) -> None:
    """Write the unit and boot.json, so that the next boot starts an agent with ``request``.

    The agent will start in this process's working folder, which has the agents' code.

    Raises:
      OSError: the disk is full, or write access is missing.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OF_A_SESSION)}
    folder.write(BOOT, to_values(KeptBoot(request, environment)), durable=True)
    unit, link = _unit(folder), _link(folder)
    link.parent.mkdir(parents=True, exist_ok=True)
    with unit.open("w") as file:
        file.write(text(folder, Path.cwd(), environment))
        file.flush()
        os.fsync(file.fileno())
    with contextlib.suppress(FileExistsError):
        link.symlink_to(unit)


def read(folder: RunFolder) -> Optional[KeptBoot]:
    """Return the request and the environment of the next agent; None if boot.json is missing or damaged."""
    return folder.read_record(BOOT, KeptBoot)


def files(folder: RunFolder) -> List[Path]:
    """Return the files of the unit that exist, in the order in which to remove them."""
    found = [_link(folder), _unit(folder), folder.own / BOOT]
    return [path for path in found if os.path.lexists(str(path))]


def remove(folder: RunFolder) -> None:
    """Remove the unit, so that no boot starts an agent of the run."""
    for path in files(folder):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def text(folder: RunFolder, code: Path, environment: Mapping[str, str]) -> str:
    """Return the text of the unit, which starts an agent in the folder ``code`` with variables of ``environment``."""
    variables = {name: environment[name] for name in LOADS if name in environment}
    return UNIT.format(
        run=_plain(folder.run),
        host=_plain(folder.host),
        machine=_plain(os.uname().nodename),  # not its machine-id: images share one, or have another at each boot
        code=_plain(str(code)),
        environment="".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in variables.items()),
        python=_argument(sys.executable),
        own=_argument(str(folder.own)),
    )


def _unit(folder: RunFolder) -> Path:
    name = "".join(each if each.isalnum() or each in "-_." else "_" for each in f"{folder.run}.{folder.host}")
    return Path.home() / ".config" / "systemd" / "user" / f"launch-{name}.service"


def _link(folder: RunFolder) -> Path:
    unit = _unit(folder)
    return unit.parent / "default.target.wants" / unit.name


def _plain(words: str) -> str:
    """Return text escaped so that systemd replaces nothing in it."""
    return words.replace("%", "%%")


def _argument(word: str) -> str:
    """Return one word of a command, escaped so that systemd replaces no variables either."""
    return _quoted(word).replace("$", "$$")


def _quoted(word: str) -> str:
    """Return one variable with its value, quoted for the unit."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + _plain(escaped) + '"'
