"""A manifest has the fields of the operator's own types, and what it cannot express is named or refused."""

from pathlib import Path
from typing import Any, Dict, List

import pytest
import yaml

from cluster.spec import load
from cluster.spec.reading import read_document
from launch.tfjob.manifests import Manifest, as_text, manifest

HOSTS = """name: mnist
command:
  ps: ["{python}", m.py, "--role={role}", "--of={num_ps}/{num_workers}", "$(date) $$ ${HOME}"]
  worker: [python, m.py, "--gpus={gpus}", "--port={port}"]
cluster:
  ps: [cpu01]
  worker: [{host: "gpu[01-03]", gpus: [2, 3]}]
env: {all: {A: "yes", B: 1.10, C: "a$$(b)", D: "$B/$$x"}}
secrets: [KEY]
limits: {ps: {memory_gib: 1.5, processors: 4}}
restart: {max: 2}
"""
# The types of the operator and of Kubernetes: a mapping has these keys, a list such items.
REPLICAS: Dict[str, Any] = {
    "replicas": int, "restartPolicy": str,
    "template": {"spec": {"containers": [{
        "name": str, "image": str, "command": [str],
        "env": [{"name": str, "value": str, "valueFrom": {"secretKeyRef": {"name": str, "key": str}}}],
        "resources": {"limits": {"nvidia.com/gpu": int, "cpu": str, "memory": str}},
    }]}},
}  # fmt: skip
TYPES: Dict[str, Any] = {
    "apiVersion": str, "kind": str, "metadata": {"name": str},
    "spec": {
        "runPolicy": {"cleanPodPolicy": str, "backoffLimit": int},
        "successPolicy": str,
        "tfReplicaSpecs": {"PS": REPLICAS, "Worker": REPLICAS, "Chief": REPLICAS, "Evaluator": REPLICAS},
    },
}  # fmt: skip


def fits(value: Any, kind: Any) -> bool:
    if isinstance(kind, dict):
        return isinstance(value, dict) and all(key in kind and fits(each, kind[key]) for key, each in value.items())
    if isinstance(kind, list):
        return isinstance(value, list) and all(fits(each, kind[0]) for each in value)
    return type(value) is kind


def made(folder: Path, text: str) -> Manifest:
    path = folder / "hosts.yaml"
    path.write_text(text)
    return manifest(load(path), read_document(path)[0], "a/b:1", "python3")


def shown(folder: Path, lines: List[Any]) -> List[str]:
    return [str(line).replace(f"{folder}/", "") for line in lines]


def containers(values: Dict[str, Any]) -> Dict[str, Any]:
    kinds = yaml.safe_load(as_text(values))["spec"]["tfReplicaSpecs"]
    return {kind: each["template"]["spec"]["containers"][0] for kind, each in kinds.items()}


def test_a_manifest_has_the_operators_fields_by_their_types(tmp_path: Path) -> None:
    found = made(tmp_path, HOSTS)
    values = yaml.safe_load(as_text(found.values))
    assert found.problems == [] and fits(values, TYPES) and values == found.values
    assert values["spec"]["runPolicy"] == {"cleanPodPolicy": "Running", "backoffLimit": 2}
    assert values["spec"]["successPolicy"] == "AllWorkers"
    kinds = values["spec"]["tfReplicaSpecs"]
    assert {kind: (each["replicas"], each["restartPolicy"]) for kind, each in kinds.items()} == {
        "PS": (1, "OnFailure"), "Worker": (3, "OnFailure")
    }  # fmt: skip


def test_a_container_has_command_environment_and_limits(tmp_path: Path) -> None:
    ps, worker = containers(made(tmp_path, HOSTS).values).values()
    assert ps["command"] == ["python3", "m.py", "--role=ps", "--of=1/3", "$$(date) $$$ ${HOME}"]
    assert worker["command"] == ["python", "m.py", "--gpus=2", "--port=2222"]
    secret = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "mnist", "key": "KEY"}}}
    plain = [
        {"name": "A", "value": "yes"},
        {"name": "B", "value": "1.10"},
        {"name": "C", "value": "a$$(b)"},
        {"name": "D", "value": "1.10/$x"},
    ]
    assert ps["env"] == worker["env"] == [*plain, secret]
    assert ps["resources"] == {"limits": {"cpu": "4", "memory": "1536Mi"}}
    assert worker["resources"] == {"limits": {"nvidia.com/gpu": 2}}


def test_texts_that_yaml_may_read_as_another_type_stand_in_quotes(tmp_path: Path) -> None:
    text = as_text(made(tmp_path, HOSTS.replace('"yes"', '"1e3"').replace("m.py", "on")).values)
    assert 'value: "1e3"' in text and '- "on"' in text and "- python3" in text


def test_a_chief_ends_the_job_and_no_restart_is_never(tmp_path: Path) -> None:
    text = "name: m\ncommand: [a]\ncluster: {chief: [{host: a, gpus: none}]}\nrestart: {max: 0}\n"
    spec = made(tmp_path, text).values["spec"]
    assert spec["runPolicy"] == {"cleanPodPolicy": "Running"} and "successPolicy" not in spec
    assert spec["tfReplicaSpecs"]["Chief"]["restartPolicy"] == "Never"


ONE = "name: m\ncommand: [a]\ncluster: {worker: [{host: a, gpus: none}]}\n"
TWO = "name: m\ncommand: [a]\ncluster:\n  worker: [{host: a, gpus: none}, {host: b, gpus: none%s}]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ONE.replace("command: [a]", "job: digits").replace("{worker", "{ps: [b], worker"),
         "hosts.yaml:2:1: job: expected the key command, found job — tasks of a job report to the launcher's agents, "
         "and resume through them; pods have no agents"),
        (ONE.replace("name: m", "name: My_Job"), "hosts.yaml:1:7: name: expected a Kubernetes name: at most 54 of"),
        (ONE.replace("name: m", f"name: {'m' * 55}"), "at most 54 of a-z, 0-9 and -, first a letter"),
        (ONE.replace("[a]", '[a, "{index}"]'), "hosts.yaml:2:14: command[1]: expected placeholders with one value"),
        (ONE.replace("[a]", '{worker: [a, "{ps_hosts}"]}'), "command.worker[1]: expected placeholders with one"),
        (ONE.replace("[a]", '["{index}"]').replace("{worker", "{ps: [b], worker"), "found {index} — let the program"),
        (ONE.replace("[a]", '["{run_folder}"]'), "found {run_folder} — name a folder that the pods share"),
        (ONE.replace(", gpus: none", ""), "hosts.yaml:3:19: cluster.worker: expected a number of GPUs for each task"),
        (ONE.replace("none", "all"), "found all GPUs of the host — write gpus: none, or a number, for this role"),
        (TWO % ", env: {A: b}", "expected the same env for all tasks of the role, found worker:1 with another"),
        (TWO % ", limits: {nice: 3}", "expected the same limits for all tasks"),
        ((TWO % "").replace("b, gpus: none", "b, gpus: 1"), "expected the same gpus for all tasks"),
        (ONE + "env: {all: {A: \"/x:$PATH\"}}", "hosts.yaml:4:16: env.all.A: expected a value without ~ or host "
         "variables, found $PATH — write the value itself"),
        (ONE + "env: {worker: {A: ~/x}}", "env.worker.A: expected a value without ~ or host variables, found ~/"),
        (ONE + "env: {worker: {A: /x:~/y}}", "expected a value without ~ or host variables, found ~/"),
        (ONE.replace("[a]", "[a, --data=~/x]"), "hosts.yaml:2:14: command[1]: expected a word without ~/, found"),
    ],
)  # fmt: skip
def test_what_pods_would_do_otherwise_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    found = shown(tmp_path, made(tmp_path, text).problems)
    assert len(found) == 1 and message in found[0], found


def test_a_name_of_just_the_right_length_is_taken(tmp_path: Path) -> None:
    assert made(tmp_path, ONE.replace("name: m", f"name: {'m' * 54}")).problems == []


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("guard: nftables\n", "hosts.yaml:4:1: guard: not carried over: write a NetworkPolicy"),
        ("workdir: /w\n", "hosts.yaml:4:1: workdir: not carried over: tasks start in the working folder of the image"),
        ("restart: {backoff_s: 3}\n", "hosts.yaml:4:11: restart.backoff_s: not carried over: the operator has its own"),
        ("limits: {worker: {nice: 3}}\n", "hosts.yaml:4:19: limits.worker.nice: not carried over: a TFJob has no such"),
        ("secrets: [K]\n", "hosts.yaml:4:1: secrets: the values come from the Secret m; create it with `kubectl"),
    ],
)
def test_every_key_that_is_lost_has_a_line(tmp_path: Path, more: str, line: str) -> None:
    found = made(tmp_path, ONE + more)
    assert found.problems == [] and len(found.notes) == 1
    assert shown(tmp_path, found.notes)[0].startswith(line)


def test_a_key_that_has_a_field_has_no_line(tmp_path: Path) -> None:
    assert made(tmp_path, HOSTS.replace("secrets: [KEY]\n", "")).notes == []
