"""The asserts of a clean checkout's tests, rewritten once: each of xdist's processes would rewrite those of all files.

A process rewrites its share of the files before it collects, into pytest's own cache. It finds the other shares there.
"""

from pathlib import Path
from typing import Any, List

from _pytest.assertion import rewrite


def rewrite_share(config: Any, number: int, processes: int) -> None:
    """Rewrite each ``processes``-th test file that the command line names, from ``number`` on."""
    state = config.stash[rewrite.assertstate_key]
    for file in files(config)[number::processes]:
        kept = rewrite.get_cache_dir(file) / (file.name[: -len(".py")] + rewrite.PYC_TAIL)
        if rewrite._read_pyc(file, kept) is None and rewrite.try_makedirs(kept.parent):
            stamp, code = rewrite._rewrite_test(file, config)
            rewrite._write_pyc(state, code, stamp, kept)


def files(config: Any) -> List[Path]:
    """Return the test files of the folders that the command line names, sorted."""
    left_out = {Path(each).resolve() for each in config.getoption("ignore") or ()}
    folders = [Path(each.split("::")[0]).resolve() for each in config.args]
    found = {file for folder in folders for file in folder.rglob("test_*.py")}
    return sorted(file for file in found if not left_out & {file, *file.parents})
