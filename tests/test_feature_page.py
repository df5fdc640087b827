"""The features that docs/architecture.md prints work as they are printed, typed into a copy of the product.

Each is a module and lines of one registry; nothing else of the copy differs, and the copy keeps the rules of the house.
What goes the other way, out of its registry, is in ``tests.removal``: here only that it fits.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple

import pytest

from launch.agent.supervision.supervisor import Supervisor
from tests.removal import NEEDED, PARTS, Part
from tests.support import ROOT
from tests.support.agent.histories import run_plan
from tests.support.waiting import PATIENCE_S
from tests.test_architecture import RULES, Source

PAGE = (ROOT / "docs" / "architecture.md").read_text()
PRODUCT = ("cluster", "launch", "jobs")
CALLBACK_CLASS = re.compile(r"^class (\w+)\(Callback\)", re.MULTILINE)


class Listing(NamedTuple):
    """A block of the page; its first line has the path of the file."""

    language: str
    path: str
    text: str


LISTINGS = [Listing(*found) for found in re.findall(r"^```(python|diff)\n# (\S+)\n(.*?)^```$", PAGE, re.M | re.S)]
RULE, CALLBACK = LISTINGS[:2], LISTINGS[2:]

FAILURE = """
from launch.agent.supervision import demo
from tests.support.agent.histories import Replay, incidents, killed

replay = Replay()
replay.up()
replay.at(5.0, killed("worker:1"))
print(demo.__file__)
print(*(deed["what"] for deed in incidents(replay)[0]["did"]), sep="\\n")
"""

TRAINING = """
from pathlib import Path

from cluster.training import demo
from tests.support.training.alone import train_alone
from tests.support.training.jobs import table

print(demo.__file__)
train_alone(table, Path(), {"examples": 80, "endless": True}, steps=250, towers=1, batch_size=8)
"""


def files(root: Path) -> Dict[str, bytes]:
    """The content of every file of a product."""
    found = [path for room in PRODUCT for path in (root / room).rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def changed(text: str, marked: str) -> str:
    """A text with each line that has a +, after the line above it in the listing, of which the text has exactly one."""
    lines, above = text.splitlines(), ""
    for line in marked.splitlines():
        if line.startswith("+"):
            assert lines.count(above) == 1, f"expected one line {above!r}, where {line!r} follows"
            lines.insert(lines.index(above) + 1, line[1:])
        above = line[1:]
    return "\n".join(lines) + "\n"


def copy(folder: Path, feature: List[Listing]) -> Path:
    """A copy of the product, into which the listings of a feature are typed."""
    for room in PRODUCT:
        shutil.copytree(str(ROOT / room), str(folder / room), ignore=shutil.ignore_patterns("__pycache__"))
    for language, path, text in feature:
        typed = folder / path
        assert typed.exists() == (language == "diff")
        typed.write_text(text if language == "python" else changed(typed.read_text(), text))
    return folder


def run(product: Path, program: str) -> List[str]:
    """What a program prints that imports the product of the copy, and the tests of this one."""
    env = {**os.environ, "PYTHONPATH": f"{product}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=str(product), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    return ran.stdout.splitlines()


def test_the_page_has_two_features_each_a_module_and_lines_of_one_registry() -> None:
    assert [(language, path) for language, path, _ in LISTINGS] == [
        ("python", "launch/agent/supervision/demo.py"),
        ("diff", "launch/agent/supervision/supervisor.py"),
        ("python", "cluster/training/demo.py"),
        ("diff", "cluster/training/worker_graph.py"),
    ]
    assert all(text.count("\n") <= 20 for _, _, text in LISTINGS)


@pytest.mark.parametrize("feature", [RULE, CALLBACK], ids=["rule", "callback"])
def test_a_copy_differs_in_what_was_typed_and_keeps_the_rules_of_the_house(
    tmp_path: Path, feature: List[Listing]
) -> None:
    before, after = files(ROOT), files(copy(tmp_path, feature))
    paths = [listing.path for listing in feature]
    assert sorted(path for path in after if after[path] != before.get(path)) == sorted(paths)
    assert set(before) <= set(after)
    sources = [Source(path, ast.parse(after[path])) for path in paths]
    assert [line for source in sources for rule in RULES for line in rule(source)] == []
    for check in (["format", "--check"], ["check"]):
        argv = [sys.executable, "-m", "ruff", *check, "--no-cache", "--config", str(ROOT / "pyproject.toml"), *paths]
        checked = subprocess.run(argv, cwd=str(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert checked.returncode == 0, checked.stdout


def test_the_rule_notes_below_an_incident_how_many_processes_are_left(tmp_path: Path) -> None:
    product = copy(tmp_path, RULE)
    module, *deeds = run(product, FAILURE)
    assert module == str(product / "launch/agent/supervision/demo.py")
    assert "demo: processes left: 2" in deeds


def test_the_callback_prints_the_step_after_every_hundred(tmp_path: Path) -> None:
    product = copy(tmp_path, CALLBACK)
    printed = run(product, TRAINING)
    assert str(product / "cluster/training/demo.py") in printed
    assert [line for line in printed if line.startswith("demo:")] == ["demo: step 100", "demo: step 200"]


def test_a_listing_that_no_longer_fits_its_registry_is_found() -> None:
    assert changed("a\nb\n", " a\n+x\n+y\n") == "a\nx\ny\nb\n"
    for text in ("b\n", "a\na\n"):
        with pytest.raises(AssertionError, match="expected one line 'a', where"):
            changed(text, " a\n+x\n")


def test_each_rule_and_each_callback_can_be_taken_out_or_has_its_reason_to_stay() -> None:
    modules = "".join(path.read_text() for path in (ROOT / "cluster" / "training").glob("*.py"))
    rules, callbacks = (
        {type(rule).__name__ for rule in Supervisor(run_plan()).rules},
        set(CALLBACK_CLASS.findall(modules)),
    )
    assert sorted([*(part.name for part in PARTS), *NEEDED]) == sorted(rules | callbacks)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: str(part.name))
def test_a_part_can_be_taken_out_of_its_registry(part: Part) -> None:
    left = part.left((ROOT / part.registry).read_text())
    ast.parse(left)
    assert f"{part.name}(" not in left or part.name == "Departures"  # which HostEvents and Requests ask
