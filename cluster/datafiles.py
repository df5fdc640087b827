"""The files of a data set that a job reads from ``args.data_dir``. Nothing is downloaded."""

import os
from typing import Any, Mapping

from cluster.errors import JobError, MissingDataError
from cluster.runtime.tf_compat import tf


def data_file(args: Mapping[str, Any], name: str, described_at: str) -> str:
    """Return the path of ``name``, or of ``name.gz``, in the folder ``args.data_dir`` on this host.

    Args:
      described_at: where the data set and its format are described; printed in errors.

    Raises:
      JobError: the job has no folder.
      MissingDataError: the folder has neither file.
    """
    folder = args.get("data_dir")
    if not isinstance(folder, str):
        raise JobError(
            f"args.data_dir: expected a folder on every worker's host that holds {name}, found {folder!r};"
            f" the data is described at {described_at}"
        )
    path = os.path.join(os.path.expanduser(folder), name)
    found = [candidate for candidate in (path, path + ".gz") if os.path.isfile(candidate)]
    if not found:
        raise MissingDataError(
            f"args.data_dir: expected {path} or {name}.gz beside it, found {_list(os.path.dirname(path))};"
            f" the data is described at {described_at}"
        )
    return found[0]


def fixed_records(path: str, size: int) -> Any:
    """Return a dataset of the records of ``size`` bytes in a file that is not gzipped.

    Raises:
      JobError: the file does not consist of such records.
    """
    if os.path.getsize(path) % size or path.endswith(".gz"):
        raise damaged(path, f"uncompressed records of {size} bytes", f"{os.path.getsize(path)} bytes")
    return tf.data.FixedLengthRecordDataset(path, size)


def damaged(path: str, expected: str, found: object) -> JobError:
    """Return the error for the file at ``path``, which has ``found`` in place of ``expected``."""
    return JobError(f"{path}: expected {expected}, found {found}; copy the file again")


def _list(folder: str) -> str:
    if not os.path.isdir(folder):
        return "no such folder"
    names = sorted(os.listdir(folder))
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return (", ".join(names[:8]) + more) or "an empty folder"
