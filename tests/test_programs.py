"""Scripts that know nothing of this launcher run under it to their end, as docs/programs.md says."""

import json
import re
from pathlib import Path
from typing import Any, Dict, List

import pytest
import tensorflow

from cluster.protocol.command_template import PLACEHOLDERS
from cluster.spec import load
from tests.support import ROOT
from tests.support.launch.launcher import shown_here
from tests.support.launch.machine import living_under

EXAMPLES = ROOT / "docs" / "examples"
PAGE = (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")
# Estimators are gone from TensorFlow 2.x, and its ParameterServerStrategy has no coordinator in 1.15.
RUNS_HERE = [
    "classic",
    "workers",
    "controller",
    "estimator" if tensorflow.__version__.startswith("1.") else "coordinator",
]
# What each task has become in the end, and what some of them have said by then.
STATES = {
    "classic": {"ps:0": "stopped", "worker:0": "succeeded", "worker:1": "succeeded"},
    "workers": {f"worker:{index}": "succeeded" for index in range(3)},
    "controller": {"chief:0": "succeeded", "worker:0": "stopped", "worker:1": "stopped"},
    "estimator": {"ps:0": "stopped", "chief:0": "succeeded", "worker:0": "succeeded", "evaluator:0": "succeeded"},
    "coordinator": {"ps:0": "stopped", "chief:0": "succeeded", "worker:0": "stopped", "worker:1": "stopped"},
}
SMALL = r"(0\.000\d*|0\.0|\S*e-\d\d)"
SAID = {
    "classic": {f"worker:{index}": rf"step 30\d, loss {SMALL}, slope 2.000" for index in (0, 1)},
    "workers": {f"worker:{index}": rf"step 300, loss {SMALL}, slope 2.000" for index in range(3)},
    "controller": {"chief:0": f"step 300, loss {SMALL}, slope 2.000"},
    "estimator": {
        "chief:0": f"final step: {SMALL}",
        "evaluator:0": f"Saving dict for global step 30\\d: .* loss = {SMALL}",
    },
    "coordinator": {"chief:0": f"step 200, loss {SMALL}, slope 2.000"},
}


def launch(verb: str, example: str, folder: Path, *options: str) -> str:
    """What ``launch VERB`` prints for an example, after its end with 0."""
    file = str(EXAMPLES / example / "hosts.yaml")
    ran = shown_here(verb, file, "--local", *options, "--set", f"workdir={folder}")
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


@pytest.mark.parametrize("example", RUNS_HERE)
def test_the_program_runs_to_its_end_and_nothing_of_it_is_left(example: str, tmp_path: Path) -> None:
    launch("up", example, tmp_path)
    status: Dict[str, Any] = json.loads(launch("status", example, tmp_path, "--json"))
    tasks = {f"{task['role']}:{task['index']}": task for task in status["tasks"]}
    assert (status["state"], {name: task["state"] for name, task in tasks.items()}) == ("succeeded", STATES[example])
    for name, said in SAID[example].items():
        assert re.search(said, Path(tasks[name]["log"]).read_text()), name
    assert living_under(tmp_path) == []


def hosts_files() -> List[str]:
    return re.findall(r"```yaml\n(# docs/examples/.*?)```", PAGE, re.DOTALL)


def test_the_page_shows_each_examples_own_hosts_file() -> None:
    texts = {name: (EXAMPLES / name / "hosts.yaml").read_text() for name in STATES}
    assert set(hosts_files()) == {f"# docs/examples/{name}/hosts.yaml\n{text}" for name, text in texts.items()}


@pytest.mark.parametrize("example", sorted(STATES))
def test_every_example_is_a_right_hosts_file_with_the_tasks_that_are_told_of(example: str) -> None:
    spec = load(EXAMPLES / example / "hosts.yaml")
    assert {task.name for task in spec.tasks} == set(STATES[example])
    assert spec.name == example


def test_the_page_lists_every_placeholder_with_its_meaning() -> None:
    rows = dict(re.findall(r"^\| `\{(\w+)\}` \| (.*) \|$", PAGE, re.MULTILINE))
    assert rows == PLACEHOLDERS
