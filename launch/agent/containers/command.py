"""The command that runs a program in a container, by ``apptainer``, ``podman`` or ``docker``.

A task sees the image, and its run's folders under the same paths as on the host. A task shares with the host

    the network        since tasks listen on the host's ports
    process ids        so that a task has one pid, and SIGTERM ends the task as it does outside a container: the kernel
                       ignores that signal for process 1 of a container
    shared memory      since /dev/shm of a container has 64 MB, too little for NCCL

The values of a task's variables are in the environment of the runtime's program. Its arguments, which other users can
read, contain no secret.

    apptainer       The container's processes are children of the program, and inherit its limits and control group.
    podman, docker  Another process is their parent. The container has a name, by which the agent ends it.
"""

import os
from dataclasses import dataclass
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cluster.protocol.addresses import PROXIES
from cluster.task import RANK_VARIABLES
from launch.agent.state.process_records import CONTAINER

APPTAINER, PODMAN, DOCKER = "apptainer", "podman", "docker"
_FORWARDED = "APPTAINERENV_"
# Variables that would break the runtime's own program; no secret has one of these names.
_OF_PROGRAM = ("HOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "PATH")
_PROXIES = [name for each in PROXIES for name in (each, each.upper())]  # variables that an image or a runtime may set


@dataclass(frozen=True)
class RunContainers:
    """The containers of a run on this host.

    Attributes:
      runtime: apptainer, podman or docker.
      program: the path of the runtime's program.
      folders: the folders that a task sees under the same paths as the host.
      user: the user and the group of this process.
    """

    runtime: str
    program: str
    image: str
    args: Tuple[str, ...]
    folders: Tuple[str, ...]
    user: Tuple[int, int]

    @property
    def is_named(self) -> bool:
        """Return whether the containers have names, as with podman and docker.

        Their processes are not children of the runtime's program, so the agent ends a container by its name.
        """
        return self.runtime != APPTAINER


class Inside(NamedTuple):
    """A program to run in a container, or on this host itself.

    Attributes:
      name: the name of the container; "" without one.
      env: the variables of the program in addition to the image's.
      folder: the folder that the program starts in.
      has_gpus: whether the program sees the host's GPUs; CUDA_VISIBLE_DEVICES selects some of them.
      reads: whether the program reads its standard input.
      nofile: the limit of open files; None for the runtime's limit.
      once: whether the runtime removes the container as soon as the program ends.
      temporary: a folder of the host for temporary files; None if the container has its own.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    folder: str
    has_gpus: bool = False
    reads: bool = False
    nofile: Optional[int] = None
    once: bool = False
    temporary: Optional[str] = None


class Command(NamedTuple):
    """The argv and the environment of a program to start: of the container runtime, or of the task itself."""

    argv: List[str]
    env: Dict[str, str]


def outside() -> Dict[str, str]:
    """Return the variables of this process without those that would mislead a task.

    Proxies make gRPC hang, even to localhost. Rank variables come from another launcher that started this process.
    """
    return {key: value for key, value in os.environ.items() if key.lower() not in PROXIES and key not in RANK_VARIABLES}


def command(container: Optional[RunContainers], inside: Inside, outside: Mapping[str, str]) -> Command:
    """Return the command that runs ``inside`` in a container, or with None on this host itself.

    ``outside`` are the variables of the runtime's process; a program without a container also gets these variables.
    """
    if container is None:
        return Command(list(inside.argv), {**outside, **inside.env})
    inside = inside._replace(env={**dict.fromkeys(_PROXIES, ""), **inside.env})
    if not container.is_named:
        forwarded = {_FORWARDED + name: value for name, value in {**inside.env, CONTAINER: inside.name}.items()}
        return Command(_apptainer(container, inside), {**outside, **forwarded})
    passed = {name: value for name, value in inside.env.items() if name not in _OF_PROGRAM}
    return Command(_with_name(container, inside), {**outside, **passed})


def _apptainer(container: RunContainers, inside: Inside) -> List[str]:
    """Return the argv of apptainer, which by default would show the user's home folder and the host's variables.

    Without ``--no-eval`` a shell would evaluate the values of variables. ``--pid`` is left out: this option would hide
    the pid that the agent knows, and make the task process 1.
    """
    folders = [*container.folders, *filter(None, [inside.temporary])]
    binds = [word for folder in folders for word in ("--bind", folder)]
    given = ["exec", "--cleanenv", "--no-eval", "--no-home", "--pwd", inside.folder, *binds]
    return [container.program, *given, *(["--nv"] if inside.has_gpus else []), *container.args,
            container.image, *inside.argv]  # fmt: skip


def _with_name(container: RunContainers, inside: Inside) -> List[str]:
    """Return the argv of podman or docker.

    The agent writes the log, so the runtime must write none. SELinux would deny a container access to the folders.
    """
    program, *arguments = inside.argv
    shared = [f"--{what}=host" for what in ("network", "pid", "ipc")]
    given = ["--name", inside.name, "--pull=never", "--log-driver=none", "--security-opt=label=disable", *shared]
    given += [f"--env={name}" for name in inside.env if name not in _OF_PROGRAM]
    given += [f"--env={name}={inside.env[name]}" for name in _OF_PROGRAM if name in inside.env]
    given += [f"--env={CONTAINER}={inside.name}"]
    given += [f"--volume={folder}:{folder}" for folder in container.folders]
    given += ["--workdir", inside.folder, *_user(container), *_wishes(container, inside)]
    return [container.program, "run", *given, *container.args, "--entrypoint", program, container.image, *arguments]


def _user(container: RunContainers) -> List[str]:
    """Return the options that make files of a task belong to this user."""
    uid, gid = container.user
    if container.runtime == PODMAN and uid != 0:
        return ["--userns=keep-id"]
    return [f"--user={uid}:{gid}"]


def _wishes(container: RunContainers, inside: Inside) -> List[str]:
    gpus = ["--device=nvidia.com/gpu=all"] if container.runtime == PODMAN else ["--gpus=all"]
    return [
        *(gpus if inside.has_gpus else []),
        *(["--interactive"] if inside.reads else []),
        *(["--rm"] if inside.once else []),
        *([f"--ulimit=nofile={inside.nofile}:{inside.nofile}"] if inside.nofile else []),
        *(["--stop-timeout=0"] if container.runtime == PODMAN else []),  # else ``podman rm`` waits before the kill
    ]


def exit_code(code: int) -> int:
    """Convert the exit code of a container's runtime into the exit code of the program in the container.

    If signal n ended the program, the runtime exits with 128 + n, and this function returns -n.
    """
    return 128 - code if 128 < code <= 128 + 64 else code
