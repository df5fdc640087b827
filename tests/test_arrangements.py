"""Every arrangement in docs/arrangements.md trains, and the synchronous ones exactly as one device would."""

import ast
import itertools
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy as np
import pytest

from cluster.runtime.tf_compat import tf
from cluster.spec import Spec, load
from launch.plan.local_spec import towers
from tests.support import ROOT
from tests.support.nightly import few
from tests.support.training.jobs import table
from tests.support.training.threads import ThreadedRun

PAGE = (ROOT / "docs" / "arrangements.md").read_text(encoding="utf-8")
STEPS, BATCH, EXAMPLES = 500, 40, 12 * 16


def slug(heading: str) -> str:
    """What a link to the heading ends in."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def arrangements() -> Dict[str, List[str]]:
    """The hosts files of each section of the page that has any."""
    sections = re.findall(r"^### (.+?)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    found = {slug(name): re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) for name, text in sections}
    return {name: files for name, files in found.items() if files}


ARRANGEMENTS = arrangements()


def specs(name: str, folder: Path) -> List[Spec]:
    paths = [folder / f"{index}.yaml" for index in range(len(ARRANGEMENTS[name]))]
    for path, text in zip(paths, ARRANGEMENTS[name]):
        path.write_text(text)
    return [load(path) for path in paths]


SYNCHRONOUS = [name for name, files in ARRANGEMENTS.items() if "async" not in files[0]]
# What no test below compares with one device, and stages, which are compared for a job without them.
NOT_COMPARED = {*ARRANGEMENTS} - {*SYNCHRONOUS} | {"independent-models-on-one-machine", "data-and-model-parallelism"}


@pytest.mark.parametrize("name", few(ARRANGEMENTS, NOT_COMPARED))
def test_polynomial_finds_its_weights(name: str, tmp_path: Path) -> None:
    runs: List[ThreadedRun] = []
    for spec in specs(name, tmp_path):
        job = "jobs.polynomial" if spec.train.stages == 1 else "tests.support.training.jobs.staged"
        train = replace(spec.train, towers=towers(spec), steps=STEPS, tower_batch_size=BATCH)
        runs.append(ThreadedRun(spec, job, train, {"learning_rate": 1.0, "seed": 0}, tmp_path / spec.name))
    for run in [run.start() for run in runs]:
        found = run.finish()
        np.testing.assert_allclose(found["w"].ravel(), [5, 0, 3], atol=0.05)
        more = len(run.outcomes) - 1 if run.settings.mode == "async" else 0  # steps that others had begun
        assert STEPS <= found["global_step"] <= STEPS + more


OPTIMIZERS = ["sgd", "momentum", "adam"]


@pytest.mark.parametrize(
    ("name", "optimizer"),
    few(itertools.product(SYNCHRONOUS, OPTIMIZERS), zip(SYNCHRONOUS, itertools.cycle(OPTIMIZERS))),
)
def test_the_variables_are_those_of_one_device_and_the_whole_batch(name: str, optimizer: str, tmp_path: Path) -> None:
    spec = specs(name, tmp_path)[0]
    number = sum(task.role == "worker" for task in spec.tasks) * int(towers(spec))
    train = replace(spec.train, towers=towers(spec), steps=12, tower_batch_size=16 // number)
    args = {"optimizer": optimizer, "examples": EXAMPLES}
    variables = ThreadedRun(spec, "tests.support.training.jobs.table", train, args, tmp_path / "run").start().finish()
    assert variables["global_step"] == 12
    for name, value in one_device(optimizer).items():
        np.testing.assert_allclose(variables[name], value, rtol=1e-5, atol=1e-5, err_msg=name)


def on_the_whole_batch(model: Callable[..., Any], optimizer: Any, batch: Dict[str, Any]) -> Any:
    return optimizer.minimize(tf.reduce_mean(model(**batch)))


def one_device(optimizer: str, minimize: Callable[..., Any] = on_the_whole_batch) -> Dict[str, Any]:
    """All variables, slots too, after a plain program has trained on the same batches, dense and sparse."""
    values = table.examples(EXAMPLES)
    config = tf.ConfigProto(device_count={"CPU": 2})
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        batch = {name: tf.placeholder(value.dtype, [16, *value.shape[1:]]) for name, value in values.items()}
        train = minimize(table.model, table.optimizer({"optimizer": optimizer}), batch)
        session.run(tf.global_variables_initializer())
        for step in range(12):
            part = slice(16 * step, 16 * (step + 1))
            session.run(train, {batch[name]: value[part] for name, value in values.items()})
        return {variable.op.name: session.run(variable) for variable in tf.global_variables()}


BY_HAND = re.findall(r"```python\n(.*?)```", PAGE.partition("### A loop written by hand\n")[2], re.DOTALL)[0]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_loop_written_by_hand_takes_the_steps_of_one_device(optimizer: str) -> None:
    page: Dict[str, Any] = {}
    exec(BY_HAND, page)

    def two_towers(model: Callable[..., Any], by: Any, batch: Dict[str, Any]) -> Any:
        return page["minimize"](model, by, batch, ["CPU:0", "CPU:1"])

    found = one_device(optimizer, two_towers)
    for name, value in one_device(optimizer).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5, err_msg=name)


def test_in_graph_workers_serve_and_succeed_under_the_launcher(tmp_path: Path) -> None:
    path = tmp_path / "in-graph.yaml"
    path.write_text(f"{ARRANGEMENTS['in-graph-over-machines'][0]}workdir: {tmp_path}/work\n")
    launch = [sys.executable, "-m", "launch"]
    up = [*launch, "up", str(path), "--local", "--set", "train.steps=20", "--set", "job=pipeline"]
    ran = subprocess.run(up, cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200)
    assert ran.returncode == 0, ran.stdout
    told = subprocess.run(
        [*launch, "status", str(path), "--local", "--json"], cwd=str(ROOT), stdout=subprocess.PIPE, timeout=100
    )
    status = json.loads(told.stdout.decode())
    assert (status["state"], status["global_step"]) == ("succeeded", 20)
    assert {task["state"] for task in status["tasks"]} == {"succeeded"}


def rows() -> List[str]:
    return [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| system")]


def test_every_test_that_the_table_names_exists() -> None:
    named = {tuple(name.split("::")) for name in re.findall(r"`(tests/[^`]+::[^`]+)`", "\n".join(rows()))}
    assert len(named) > 5
    for path, function in sorted(named):
        tree = ast.parse((ROOT / path).read_text())
        assert function in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, (path, function)


def test_every_row_of_the_table_leads_to_a_hosts_file_or_a_function_and_names_a_test() -> None:
    linked = re.findall(r"\]\(#([^)]+)\)", "\n".join(rows()))
    assert sorted(linked) == sorted([*ARRANGEMENTS, "a-loop-written-by-hand"])
    assert all("::test_" in row for row in rows())


def test_every_hosts_file_of_the_page_is_right(tmp_path: Path) -> None:
    for name in ARRANGEMENTS:
        assert [spec.job for spec in specs(name, tmp_path)]
