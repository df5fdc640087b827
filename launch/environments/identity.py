"""The Python environment that a hosts file's ``setup`` asks for, and the name of its place on a host.

An environment is named by a hash of its ingredients: the lock, and the Python that it is built on. So the
launcher computes the place of an environment without asking a host. An environment that is there need not be
built again.
"""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Dict, Mapping, Optional

from cluster.spec.model import Setup, Spec
from launch.agent.wire.verb_requests import BuildRequest, LockText, WheelFile
from launch.environments.packages import LockFile, files_of, read_lock
from launch.errors import UsageError
from launch.hosts.bundle import PROJECT

PYTHON = "{environment}/bin/python"  # of a task; its host's agent knows where the environment is
ANY = "*"  # every version of Python that has no lock of its own


def locks_of(spec: Spec, setup: Setup) -> Dict[str, LockFile]:
    """Return the lock for each version of Python on a host: {"3.7" or "*": lock}.

    Raises:
      UsageError: a lock cannot be read.
    """
    if setup.lock is not None:
        return {ANY: read_lock(beside(spec, setup.lock))}
    ours = own_locks()
    return {"3.7": read_lock(ours / "tf1.lock"), ANY: read_lock(ours / "tf2.lock")}


def own_locks() -> Path:
    """Return the folder of this project's locks: this package where it was installed (setup.py), else requirements/."""
    installed = Path(__file__).parent
    return installed if (installed / "tf1.lock").is_file() else PROJECT / "requirements"


def beside(spec: Spec, path: str) -> Path:
    """Return a path in the hosts file, which is relative to that file."""
    return spec.path.resolve().parent / os.path.expanduser(path)


def identities(spec: Spec, pythons: Mapping[str, str]) -> Dict[str, str]:
    """Return the environment of each host: {host: hash}; empty without the key ``setup``.

    Raises:
      UsageError: a lock cannot be read.
    """
    if spec.setup is None:
        return {}
    return _identities(pythons, locks_of(spec, spec.setup))


def _identities(pythons: Mapping[str, str], locks: Mapping[str, LockFile]) -> Dict[str, str]:
    known = {python: _identity(python, _possible(python, locks)) for python in set(pythons.values())}
    return {host: known[python] for host, python in pythons.items()}


def _identity(python: str, locks: Mapping[str, LockFile]) -> str:
    made_of = [python, {version: lock.text for version, lock in locks.items()}]
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]


def _possible(python: str, locks: Mapping[str, LockFile]) -> Mapping[str, LockFile]:
    """Return the locks that a host with this Python may take.

    Where the Python's name has the version, as ``python3.7`` does, there is only one.
    """
    named = re.search(r"python(\d+\.\d+)$", python)
    return {ANY: locks.get(named[1], locks[ANY])} if named else locks


class Order:
    """The environments that hosts are asked to build.

    ``files`` has what can be sent to the hosts, by SHA-256.

    Raises:
      UsageError: the hosts file has no key ``setup``, or a lock or wheel folder cannot be used.
    """

    def __init__(self, spec: Spec, pythons: Mapping[str, str], wheels: Optional[Path] = None):
        if spec.setup is None:
            raise UsageError(
                f"{spec.path}: expected the key setup, which names the lock file, found none; "
                "add `setup: {}` for this project's own lock, or `setup: {lock: PATH}`"
            )
        self._spec, self._setup = spec, spec.setup
        self._locks = locks_of(spec, spec.setup)
        self._pythons = dict(pythons)
        self._identities = _identities(pythons, self._locks)
        folder = wheels or (beside(spec, spec.setup.wheels) if spec.setup.wheels else None)
        self._offline = folder is not None and spec.setup.index_url is None
        self.files: Dict[str, Path] = files_of(folder, frozenset(self._locks.values())) if folder else {}

    @property
    def hosts(self) -> Mapping[str, str]:
        """Return {host: hash of its environment}."""
        return self._identities

    def request(self, host: str) -> BuildRequest:
        """Return the request to the agent of ``host``."""
        locks = _possible(self._pythons[host], self._locks)
        return BuildRequest(
            self._spec.workdir,
            self._identities[host],
            {version: LockText(lock.text, lock.tools) for version, lock in locks.items()},
            tuple(WheelFile(path.name, digest, path.stat().st_size) for digest, path in self.files.items()),
            self._offline,
            self._setup.index_url,
        )
