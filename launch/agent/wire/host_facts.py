"""The facts of a host, which ``launch check`` and ``launch diagnose`` collect alike.

Every fact is collected beside the others, since one may hang in a file server or in a driver. A fact that did not
come is null or left out of its mapping, and has a ``Gap``.
"""

from dataclasses import dataclass
from typing import List, Mapping, Optional, Tuple, Union

from cluster.protocol.settings import Container

# The installed packages that bring a module which is not imported.
_PACKAGES = {"tensorflow": ("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "nvidia-tensorflow")}


@dataclass(frozen=True)
class FactsRequest:
    """The facts to collect.

    Attributes:
      workdir: the working folder on this host; may begin with ``~``.
      python: the tasks' Python, where they have no environment.
      environment: the hash of the Python environment that tasks run in; None for the host's own Python.
      env: the tasks' own variables that may affect an import.
      folders: the folders whose disks matter.
      trial: whether a run is to start here. Then numpy and TensorFlow are imported, and a sample is written to each
        folder. Else the packages are listed, and nothing is changed.
      container: the container that has another Python for the tasks; None for no container.
    """

    workdir: str
    python: str
    environment: Optional[str]
    env: Mapping[str, str]
    folders: Tuple[str, ...]
    trial: bool
    container: Optional[Container] = None


@dataclass(frozen=True)
class Failed:
    """The error in the place of a fact."""

    error: str


@dataclass(frozen=True)
class Python:
    """The tasks' Python, which started."""

    version: str
    path: str


@dataclass(frozen=True)
class Module:
    """A module that the tasks' Python imported."""

    version: str


@dataclass(frozen=True)
class Versions:
    """The tasks' Python, and what it imports or has installed.

    Attributes:
      environment_ready: whether the Python environment is complete that the file asks for, if it asks for one.
      python: the Python itself.
      numpy: as it was imported; None where it was not tried.
      tensorflow: as it was imported; None where it was not tried.
      packages: the version of each installed package; None where they were not listed.
      code: the hash of each bundle that the newest run was started with; None where it is not asked for.
    """

    environment_ready: bool
    python: Union[Python, Failed]
    numpy: Union[Module, Failed, None] = None
    tensorflow: Union[Module, Failed, None] = None
    packages: Optional[Mapping[str, str]] = None
    code: Optional[Mapping[str, str]] = None


@dataclass(frozen=True)
class Gpu:
    """One GPU of a host.

    Attributes:
      uuid: UUID of a GPU, in the order of the indices.
      name: Model of the GPU.
      booked: Full name of the run that booked the GPU; null without a booking.
      processes[]: Process that uses the GPU, with its memory.
      memory_errors: Uncorrectable memory errors since the driver was loaded; null where it counts none.
      slowed: True while the hardware reduces the clock, for heat or for lack of power.
    """

    uuid: str
    name: str
    booked: Optional[str]
    processes: List[str]
    memory_errors: Optional[int] = None
    slowed: bool = False


@dataclass(frozen=True)
class Gpus:
    """The GPUs of a host by their indices, and the version of their driver; None without a driver."""

    driver: Optional[str]
    gpus: List[Gpu]


@dataclass(frozen=True)
class Disk:
    """The file system of a folder, or of the folder's nearest parent where ``is_there`` is False."""

    is_there: bool
    writable: bool
    bytes: int
    free_bytes: int
    inodes: int
    free_inodes: int


@dataclass(frozen=True)
class Clock:
    """A host's clock against the launcher's.

    Attributes:
      offset_s: Seconds that the host's clock is ahead of the launcher's; negative: behind.
      error_s: Largest error of offset_s, in seconds.
    """

    offset_s: float
    error_s: float


@dataclass(frozen=True)
class Gap:
    """A fact that is missing.

    Attributes:
      section: the part of the collection that had to find it.
      why: the reason, in words.
      late: whether there was no time for it; else it failed.
    """

    section: str
    why: str
    late: bool = False


@dataclass(frozen=True)
class HostFacts:
    """The facts of a host that both verbs collect; the launcher adds ``clock``."""

    versions: Optional[Versions]
    gpus: Optional[Gpus]
    disks: Mapping[str, Union[Disk, Failed]]
    gaps: List[Gap]
    clock: Optional[Clock]

    def version_of(self, name: str) -> Optional[str]:
        """Return the version of ``python``, ``numpy`` or ``tensorflow``; None where it is missing or broken."""
        if self.versions is None:
            return None
        found: Union[Python, Module, Failed, None] = getattr(self.versions, name)
        if found is not None:
            return None if isinstance(found, Failed) else found.version
        packages = self.versions.packages or {}
        return next((packages[each] for each in _PACKAGES.get(name, (name,)) if each in packages), None)

    @property
    def driver(self) -> Optional[str]:
        """Return the version of the NVIDIA driver; None without one."""
        return None if self.gpus is None else self.gpus.driver
