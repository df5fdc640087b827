"""The facts of a host, which ``launch check`` and ``launch diagnose`` collect alike.

All facts are collected in parallel, since one may hang in a file server or in a driver. A missing fact is null or left
out of its mapping, and has a ``Gap``.
"""

from dataclasses import dataclass
from typing import List, Mapping, Optional, Tuple, Union

from cluster.protocol.settings import Container

# The packages that contain each module, to look up versions without an import.
_PACKAGES = {"tensorflow": ("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "nvidia-tensorflow")}


@dataclass(frozen=True)
class FactsRequest:
    """The facts to collect.

    Attributes:
      workdir: the working folder on this host; may begin with ``~``.
      python: the tasks' Python, where the tasks have no environment.
      environment: the hash of the tasks' Python environment; None for the host's own Python.
      env: the tasks' own variables that may affect an import.
      folders: the folders whose disks the host reports.
      trial: whether a run will start here. If so, the host imports numpy and TensorFlow, and writes a sample to each
        folder. Else the host lists the packages, and changes nothing.
      container: the tasks' container, which has another Python; None for no container.
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
    """An error that a host sends in place of a fact."""

    error: str


@dataclass(frozen=True)
class Python:
    """The tasks' Python, after a successful start."""

    version: str
    path: str


@dataclass(frozen=True)
class Module:
    """A module that the tasks' Python imported."""

    version: str


@dataclass(frozen=True)
class Versions:
    """The tasks' Python, and its imported or installed packages.

    Attributes:
      environment_ready: whether the Python environment of the hosts file is complete, if the file asks for an
        environment.
      python: the Python itself.
      numpy: the imported numpy; None where no import was tried.
      tensorflow: the imported TensorFlow; None where no import was tried.
      packages: the version of each installed package; None where the packages were not listed.
      code: the hash of each bundle of the newest run; None where the request does not ask for these hashes.
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
      uuid: UUID of the GPU; the list has the GPUs in the order of their indices.
      name: Model of the GPU.
      booked: Full name of the run that booked the GPU; null without a booking.
      processes[]: Process that uses the GPU, with its memory.
      memory_errors: Uncorrectable memory errors since the driver was loaded; null where the GPU does not count errors.
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
    """The GPUs of a host in the order of their indices; ``driver`` is their driver's version, None without a driver."""

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
      section: the part of the collection that had to find the fact.
      why: the reason, in words.
      late: whether the time ran out; else the collection failed.
    """

    section: str
    why: str
    late: bool = False


@dataclass(frozen=True)
class HostFacts:
    """The facts of a host that both ``launch check`` and ``launch diagnose`` collect; the launcher adds ``clock``."""

    versions: Optional[Versions]
    gpus: Optional[Gpus]
    disks: Mapping[str, Union[Disk, Failed]]
    gaps: List[Gap]
    clock: Optional[Clock]

    def version_of(self, name: str) -> Optional[str]:
        """Return the version of ``python``, ``numpy`` or ``tensorflow``; None for a missing or broken package."""
        if self.versions is None:
            return None
        found: Union[Python, Module, Failed, None] = getattr(self.versions, name)
        if found is not None:
            return None if isinstance(found, Failed) else found.version
        packages = self.versions.packages or {}
        return next((packages[each] for each in _PACKAGES.get(name, (name,)) if each in packages), None)

    @property
    def driver(self) -> Optional[str]:
        """Return the version of the NVIDIA driver; None without a driver."""
        return None if self.gpus is None else self.gpus.driver
