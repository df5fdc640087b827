"""The code that a host needs: two bundles, each known by the hash of its content.

``launcher`` is this project's own part that runs on hosts; ``job`` is the folder of the
job file, or, for ``command:``, the folder of the hosts file. A bundle that is already on
a host is not sent again.
"""

import gzip
import hashlib
import io
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

from launch.errors import UsageError

PROJECT = Path(__file__).resolve().parent.parent
LIMIT_MIB = 64
_SKIPPED = ("__pycache__", "node_modules")
_ON_HOSTS = (
    "cluster/*.py",
    "cluster/trace/*.py",
    "cluster/verify/*.py",
    "launch/__init__.py",
    "launch/agent/*.py",
    "launch/agent/supervision/*.py",
    "jobs/*.py",
    "jobs/data/*",
)


@dataclass(frozen=True)
class Bundle:
    """A tar.gz and its hash; equal content gives equal bytes."""

    data: bytes
    digest: str


@dataclass(frozen=True)
class Code:
    """The bundles of a run, by kind."""

    bundles: Dict[str, Bundle]

    @property
    def hashes(self) -> Dict[str, str]:
        """{kind: hash}"""
        return {kind: bundle.digest for kind, bundle in self.bundles.items()}


@dataclass(frozen=True)
class JobCode:
    """Where a job's code is: ``folder`` is shipped, ``entry`` is what jobs.main loads.

    ``entry`` is a path inside the folder, or a dotted module that is looked for in it.
    ``folder`` None: the module is taken from what is installed on the hosts.
    """

    folder: Optional[Path]
    entry: str
    package: Optional[str] = None  # ship this subfolder alone


def launcher_code() -> Code:
    """What every verb needs on a host."""
    files = [path for pattern in _ON_HOSTS for path in sorted(PROJECT.glob(pattern))]
    return Code({"launcher": pack([(path, path.relative_to(PROJECT).as_posix()) for path in files])})


def with_folder(code: Code, job: JobCode) -> Code:
    """``code`` and the folder of a job or program.

    Raises:
      UsageError: the folder is too large to be sent to every host.
    """
    if job.folder is None:
        return code
    root = job.folder / job.package if job.package else job.folder
    files = list(_files(root))
    _check_size(root, files)
    named = [(path, path.relative_to(job.folder).as_posix()) for path in files]
    return Code({**code.bundles, "job": pack(named)})


def find_job(name: str, beside: Path) -> JobCode:
    """The code of ``job: NAME`` in a hosts file that lies in ``beside``.

    A path ends in .py; a dotted name is a module; a bare name is ``jobs/NAME.py`` beside
    the hosts file, or else one of this project's own jobs.

    Raises:
      UsageError: there is no such file.
    """
    if name.endswith(".py"):
        return _file(name, [beside / os.path.expanduser(name)])
    if "." in name:
        top = name.split(".")[0]
        here = (beside / top).is_dir()
        return JobCode(beside if here else None, name, top if here else None)
    return _file(name, [beside / "jobs" / f"{name}.py", PROJECT / "jobs" / f"{name}.py"])


def _file(name: str, candidates: List[Path]) -> JobCode:
    for path in candidates:
        if path.is_file():
            return JobCode(path.parent.resolve(), path.name)
    looked = " and ".join(dict.fromkeys(str(path) for path in candidates))
    known = sorted(path.stem for path in (PROJECT / "jobs").glob("*.py") if "\ndef model(" in path.read_text())
    raise UsageError(
        f"job: expected a file, found none at {looked}; the jobs that come with this project: {', '.join(known)}"
    )


def _files(root: Path) -> Iterator[Path]:
    for folder, below, names in os.walk(str(root)):
        below[:] = sorted(name for name in below if _wanted(name) and not (Path(folder) / name / "pyvenv.cfg").exists())
        for name in sorted(names):
            path = Path(folder) / name
            if _wanted(name) and path.is_file():
                yield path


def _wanted(name: str) -> bool:
    return not name.startswith(".") and name not in _SKIPPED and not name.endswith((".pyc", ".egg-info"))


def _check_size(root: Path, files: List[Path]) -> None:
    sizes = sorted(((path.stat().st_size, path) for path in files), reverse=True)
    total = sum(size for size, _ in sizes)
    if total > LIMIT_MIB << 20:
        largest, path = sizes[0]
        raise UsageError(
            f"job: the folder {root} is shipped to every host; expected at most {LIMIT_MIB} MiB, "
            f"found {total >> 20} MiB, {largest >> 20} of them in {path}; "
            "move the job into a folder of its own, and data to where the hosts read it"
        )


def pack(files: List[Tuple[Path, str]]) -> Bundle:
    """A bundle of (file, name inside): the same bytes for the same content, whenever and whoever packs it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, name in files:
            entry = tarfile.TarInfo(name)  # no times, no owners
            content = path.read_bytes()
            entry.size, entry.mode = len(content), 0o700 if os.access(str(path), os.X_OK) else 0o600
            archive.addfile(entry, io.BytesIO(content))
    data = _compress(buffer.getvalue())
    return Bundle(data, hashlib.sha256(data).hexdigest()[:16])


def _compress(data: bytes) -> bytes:
    zipped = io.BytesIO()
    with gzip.GzipFile(fileobj=zipped, mode="wb", mtime=0) as file:
        file.write(data)
    return zipped.getvalue()
