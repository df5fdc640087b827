"""The code that a host needs: two bundles, each identified by the hash of its content.

``launcher`` is the part of this project that runs on hosts. ``job`` is the folder of the job file or, for ``command:``,
the folder of the hosts file. A bundle that is already on a host is not sent again.
"""

import difflib
import hashlib
import io
import itertools
import json
import os
import tarfile
import threading
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from launch.agent.tasks.work_folder import MANIFEST
from launch.errors import UsageError
from launch.hosts.job_files import JobFiles, content_of

PROJECT = Path(__file__).resolve().parents[2]
LISTED = 1000  # most files to compare with a misspelt name
_ON_HOSTS = (
    "cluster/**/*.py",
    "launch/__init__.py",
    "launch/agent/**/*.py",
    "launch/status/*.py",
    "jobs/*.py",
    "jobs/data/*",
)
_LAUNCHERS_OWN = "cluster/spec"  # reads hosts files, with packages that hosts may lack
_PACKAGES = ("cluster", "jobs", "launch")  # of this project: a task always imports these, not packages next to its job
_COMPRESSING = threading.Lock()


@dataclass(frozen=True)
class Bundle:
    """A tar file's bytes, and the hash of its manifest; equal content gives equal bytes."""

    tar: bytes
    digest: str

    @property
    def data(self) -> bytes:
        """Return the tar.gz file to send. Only this property compresses, because most verbs send no bundle."""
        with _COMPRESSING:  # hosts are reached by threads
            return _compress(self.tar)


@dataclass(frozen=True)
class Code:
    """The bundles of a run, by kind."""

    bundles: Dict[str, Bundle]

    @property
    def hashes(self) -> Dict[str, str]:
        """Return the hash of each bundle: {kind: hash}."""
        return {kind: bundle.digest for kind, bundle in self.bundles.items()}


@dataclass(frozen=True)
class JobCode:
    """The location of a job's code: ``folder`` is shipped, and jobs.main loads ``entry``.

    ``entry`` is a path inside the folder, or a dotted module in the folder. Where ``folder`` is None, the module must
    be installed on the hosts.
    """

    folder: Optional[Path]
    entry: str
    package: Optional[str] = None  # ship only this subfolder
    workdir: Optional[Path] = None  # for runs on this machine; never shipped, even if inside the folder


def launcher_code() -> Code:
    """Return the code that every verb needs on a host."""
    found = [path for pattern in _ON_HOSTS for path in sorted(PROJECT.glob(pattern))]
    names = [(path, path.relative_to(PROJECT).as_posix()) for path in found]
    return Code({"launcher": pack([(path, name) for path, name in names if not name.startswith(_LAUNCHERS_OWN)])})


def with_folder(code: Code, job: JobCode) -> Code:
    """Return ``code`` with the folder of a job or program.

    Raises:
      UsageError: the folder, or a file in it, cannot be sent to every host.
    """
    if job.folder is None:
        return code
    named = sorted((path.relative_to(job.folder).as_posix(), path) for path in shipped(job))
    return Code({**code.bundles, "job": pack([(path, name) for name, path in named])})


def shipped(job: JobCode) -> List[Path]:
    """Return the files of a job's folder that are sent to every host.

    Raises:
      UsageError: the folder, or a file in it, cannot be sent.
    """
    if job.folder is None:
        return []
    return list(JobFiles(job.folder / job.package if job.package else job.folder, job.workdir).find().sizes)


def find_job(name: str, beside: Path, at: str = "job") -> JobCode:
    """Return the code of ``job: NAME`` in a hosts file in the folder ``beside``.

    ``at`` names that key in error messages. A path ends in .py. A dotted name is a module. A bare name is
    ``jobs/NAME.py`` next to the hosts file, or else one of this project's own jobs.

    Raises:
      UsageError: the file does not exist, or a module next to it has the name of one of this project's packages.
    """
    if name.endswith(".py"):
        candidates = [beside / os.path.expanduser(name)]
    elif "." in name:
        top = name.split(".")[0]
        here = (beside / top).is_dir()
        _refuse_hidden(beside, [f"{name.replace('.', '/')}.py"] if top in _PACKAGES else [], at)
        return JobCode(beside if here else None, name, top if here else None)
    else:
        candidates = [beside / "jobs" / f"{name}.py", PROJECT / "jobs" / f"{name}.py"]
    for path in candidates:
        if path.is_file():
            folder = path.parent.resolve()
            modules = [file for each in _PACKAGES for file in (f"{each}.py", f"{each}/__init__.py")]
            _refuse_hidden(folder, [file for file in modules if file != path.name], at)
            return JobCode(folder, path.name)
    looked = " and ".join(dict.fromkeys(str(path) for path in candidates))
    raise UsageError(f"{at}: expected a file, found none at {looked}; {_other_jobs(name, beside)}")


def _refuse_hidden(folder: Path, modules: Sequence[str], at: str) -> None:
    """Refuse modules that a task could not import, because it imports this project's package of the same name.

    Raises:
      UsageError: one of these files exists in the folder, and the folder is not this project's.
    """
    hidden = [folder / file for file in modules if (folder / file).is_file() and folder.resolve() != PROJECT]
    if hidden:
        raise UsageError(
            f"{at}: expected other names of files and folders than {', '.join(_PACKAGES)}, found {hidden[0]}; a task"
            " imports this project's package of that name instead; rename yours, and change its imports"
        )


def _other_jobs(name: str, beside: Path) -> str:
    own = sorted(path.stem for path in (PROJECT / "jobs").glob("*.py") if "\ndef model(" in path.read_text())
    files = [path.name for path in itertools.islice(beside.glob("*.py"), LISTED)]
    beside_it = [path.stem for path in itertools.islice((beside / "jobs").glob("*.py"), LISTED)]
    near = difflib.get_close_matches(name, [*beside_it, *own, *files], 1)
    known = f"the jobs that come with this project: {', '.join(own)}"
    return f"did you mean {near[0]}? {known}" if near else known


def pack(files: List[Tuple[Path, str]]) -> Bundle:
    """Return a bundle of (file, name in the bundle) pairs.

    The same content gives the same bytes, at any time and for any user.
    """
    manifest: Dict[str, Tuple[int, int, str]] = {}
    contents = io.BytesIO()
    with tarfile.open(fileobj=contents, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, name in files:
            content, mode = content_of(path), 0o700 if os.access(str(path), os.X_OK) else 0o600
            manifest[name] = mode, len(content), hashlib.sha256(content).hexdigest()
            _add(archive, name, mode, content)
        listed = json.dumps(manifest, sort_keys=True).encode()
        _add(archive, MANIFEST, 0o600, listed)
    return Bundle(contents.getvalue(), hashlib.sha256(listed).hexdigest()[:16])


def _add(archive: tarfile.TarFile, name: str, mode: int, content: bytes) -> None:
    entry = tarfile.TarInfo(name)  # without times and owners
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


@lru_cache(maxsize=2)  # the two bundles of a run
def _compress(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=31)  # gzip, without a time
    return packer.compress(data) + packer.flush()
