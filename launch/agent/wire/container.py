"""The request to run tasks in a container."""

from dataclasses import dataclass
from typing import Optional, Tuple


@dataclass(frozen=True)
class ContainerRequest:
    """The key ``container`` of a hosts file, as a host needs it.

    Attributes:
      image: a path on the host, which may begin with ``~``, or the name of an image.
      python: the Python in the image.
      runtime: apptainer, podman or docker; None for the host's choice.
      args: further options of the runtime.
    """

    image: str
    python: str = "python3"
    runtime: Optional[str] = None
    args: Tuple[str, ...] = ()
