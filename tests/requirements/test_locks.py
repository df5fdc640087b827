"""The lock files pin everything, with hashes, and agree with what the project says that it needs."""

import re
import subprocess
import sys
from typing import Dict, Set

import pytest
from packaging.requirements import Requirement

from tests.support import ROOT

LOCKS = ["tf1", "test-tf1", "plots-tf1", "tf2", "test-tf2", "plots-tf2"]
PYTHONS = {"tf1": "3.7", "tf2": "3.13"}
PIN = re.compile(r"^([a-z0-9-]+)==([^ ;]+)", re.MULTILINE)


def text(name: str) -> str:
    return (ROOT / "requirements" / name).read_text()


def pins(lock: str) -> Dict[str, Set[str]]:
    """Package to its versions; the second runtime's locks have one for each group of Pythons."""
    found: Dict[str, Set[str]] = {}
    for name, version in PIN.findall(text(f"{lock}.lock")):
        found.setdefault(name, set()).add(version)
    return found


def named(lines: str, runtime: str) -> Set[str]:
    """The packages that an .in file asks for itself, on the runtime's newest Python."""
    wanted = map(Requirement, re.findall(r"^[A-Za-z].*", lines, re.MULTILINE))
    python = {"python_version": PYTHONS[runtime]}
    return {each.name.lower() for each in wanted if each.marker is None or each.marker.evaluate(python)}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_is_a_pin_a_hash_or_a_comment_so_no_index_is_named(lock: str) -> None:
    allowed = re.compile(r"[a-z0-9-]+==[^ ]+( ; .+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?|\s*#.*")
    strange = [line for line in text(f"{lock}.lock").splitlines() if not allowed.fullmatch(line)]
    assert strange == []
    assert "://" not in text(f"{lock}.lock")


@pytest.mark.parametrize("runtime", ["tf1", "tf2"])
def test_the_test_lock_only_adds_to_its_runtime(runtime: str) -> None:
    run, test = pins(runtime), pins(f"test-{runtime}")
    # What runs on some Pythons only may be there on more of them for the tests' sake.
    assert {name: versions & test.get(name, set()) for name, versions in run.items()} == run
    assert named(text("test.in"), runtime) <= set(test)


@pytest.mark.parametrize("runtime", ["tf1", "tf2"])
def test_the_lock_of_the_plots_changes_nothing_of_the_tests(runtime: str) -> None:
    test, plots = pins(f"test-{runtime}"), pins(f"plots-{runtime}")
    assert [name for name in plots if not plots[name] <= test.get(name, plots[name])] == []
    assert named(text("plots.in"), runtime) <= set(plots)


@pytest.mark.parametrize("runtime", ["tf1", "tf2"])
def test_a_lock_holds_what_its_in_files_ask_for(runtime: str) -> None:
    assert named(text(f"{runtime}.in"), runtime) | named(text("launcher.in"), runtime) <= set(pins(runtime))


def test_the_first_runtime_is_tensorflow_115_as_documented() -> None:
    assert pins("tf1")["tensorflow-gpu"] == {"1.15.0"}


def test_the_projects_dependencies_are_the_launchers_packages_in_a_range_that_has_every_locked_version() -> None:
    found = re.search(r"^dependencies = \[(.*?)^\]$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    ranges = {each.name.lower(): each.specifier for each in map(Requirement, re.findall(r'"([^"]+)"', found.group(1)))}
    assert set(ranges) == named(text("launcher.in"), "tf1") - {"pip", "setuptools"}
    locked = {(name, version) for lock in ("tf1", "tf2") for name in ranges for version in pins(lock)[name]}
    assert [(name, version) for name, version in sorted(locked) if not ranges[name].contains(version)] == []


def test_the_environment_of_this_run_lacks_nothing_and_has_no_conflict() -> None:
    check = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, timeout=120)
    assert check.stdout == "No broken requirements found.\n"
