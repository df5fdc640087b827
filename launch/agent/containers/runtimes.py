"""The search for this host's container runtime and image; if one is missing, an error with the remedy."""

import os
import shutil
from pathlib import Path
from typing import List, Optional, Sequence, Tuple

from cluster.protocol.env_values import word_with_home
from cluster.protocol.settings import Container, is_image_file
from launch.agent.containers.command import APPTAINER, DOCKER, PODMAN, RunContainers
from launch.agent.containers.control import NoAnswer, ask
from launch.agent.errors import AgentError

_INSTALL = "install it, or choose another with container.runtime"


class Lacking(AgentError):
    """The error that tasks cannot run in their container on this host.

    Attributes:
      what: a text with the expected and the found state.
      mend: what the user can do about it.
    """

    def __init__(self, what: str, mend: str):
        super().__init__(f"{what}; {mend}")
        self.what, self.mend = what, mend


def of_run(
    request: Optional[Container], workdir: Path, checkpoint_dir: Optional[str] = None
) -> Optional[RunContainers]:
    """Return the containers of a run on this host; None without a request.

    The containers see ``workdir``, and ``checkpoint_dir`` if it is a folder, which is created if it is missing.

    Raises:
      Lacking: the runtime or its image is missing, or a folder cannot be bound.
    """
    if request is None:
        return None
    kept = [_absolute(checkpoint_dir)] if checkpoint_dir and "://" not in checkpoint_dir else []
    for folder in kept:  # docker would create a missing one, as root
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            what = f"train.checkpoint.dir: expected a folder for the container on this host, found {folder}"
            raise Lacking(f"{what}: {os.strerror(error.errno or 0)}", "choose another folder") from error
    return find(request, [workdir, *kept])


def find(request: Container, folders: Sequence[Path]) -> RunContainers:
    """Return the containers that a request describes, with the runtime and the image found on this host.

    Args:
      folders: the folders that tasks see.

    Raises:
      Lacking: the runtime or its image is missing, or a folder cannot be bound.
    """
    for folder in folders:
        if ":" in str(folder) or "," in str(folder):
            raise Lacking(f"container: expected a folder without ':' and ',', found {folder}", "choose another folder")
    runtime, program, image = _find(request)
    return RunContainers(
        runtime, program, image, tuple(map(word_with_home, request.args)), _outermost(folders),
        (os.geteuid(), os.getegid()),
    )  # fmt: skip


def _find(request: Container) -> Tuple[str, str, str]:
    """Return the runtime, its program, and the image in the program's form."""
    wanted = (APPTAINER,) if is_image_file(request.image) else (PODMAN, DOCKER)
    wanted = wanted if request.runtime is None else (request.runtime,)
    programs = [(runtime, shutil.which(runtime)) for runtime in wanted]
    there = [(runtime, str(program)) for runtime, program in programs if program]
    if not there:
        expected = " or ".join(wanted)
        raise Lacking(f"container.runtime: expected {expected} on this host, found none", _INSTALL)
    if is_image_file(request.image):
        return (*there[0], _file(request.image))
    reasons: List[Lacking] = []
    for runtime, program in there:
        reason = _missing(program, runtime, request.image)
        if reason is None:
            return runtime, program, request.image
        reasons.append(reason)
    raise reasons[0]


def _absolute(path: str) -> Path:
    return Path(os.path.abspath(os.path.expanduser(path)))


def _file(image: str) -> str:
    path = _absolute(image)
    if not path.exists():
        mend = f"create it on that host: `apptainer pull {path} docker://IMAGE`"
        raise Lacking(f"container.image: expected the file {path} on this host, found none", mend)
    return str(path)


def _missing(program: str, runtime: str, image: str) -> Optional[Lacking]:
    """Return the reason why a runtime cannot run an image; None where it can."""
    try:
        if ask(program, "image", "inspect", image).code == 0:
            return None
        listed = ask(program, "images", "--quiet")  # to distinguish a missing image from a broken runtime
    except NoAnswer as error:
        return Lacking(f"container.runtime: expected {runtime} to work on this host, found: {error}", _INSTALL)
    if listed.code != 0:
        mend = f"see `{runtime} info` on that host, or choose another with container.runtime"
        return Lacking(f"container.runtime: expected {runtime} to work on this host, found: {listed.error}", mend)
    mend = f"pull it on that host: `{runtime} pull {image}`"
    return Lacking(f"container.image: expected {image} among the images of {runtime} on this host, found none", mend)


def _outermost(folders: Sequence[Path]) -> Tuple[str, ...]:
    """Return the folders that lie in no other of these folders."""
    apart = dict.fromkeys(folders)
    return tuple(str(each) for each in apart if not any(other in each.parents for other in apart))
