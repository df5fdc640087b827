"""A TFJob becomes roles; a line names all that is lost, and a change of meaning is refused."""

from pathlib import Path
from subprocess import check_output
from typing import List, Optional

import pytest

from cluster.protocol.settings import Limits
from launch.tfjob.jobs import Role
from tests.launch.tfjob.manifests import HEAD, notes, problems, read, replicas, tfjob

WORKER = replicas("Worker", "replicas: 1, ")


def test_every_role_is_read(tmp_path: Path) -> None:
    text = tfjob(
        replicas("Evaluator"),
        replicas("Worker", "replicas: 3, ", ", args: [--n=$(N)], env: [{name: N, value: 5}, {name: M, value: $(N)x}]"),
        replicas("PS", "replicas: 2, "),
        replicas("Chief", container=", resources: {limits: {nvidia.com/gpu: 2, memory: 1536Mi, cpu: 4}}"),
    )
    job, reader = read(tmp_path, text)
    assert reader.problems == [] and job.name == "mnist"
    command = ("python", "m.py")
    assert job.roles == (
        Role("ps", 2, command, {}, 0, Limits()),
        Role("chief", 1, command, {}, 2, Limits(memory_gib=1.5, processors=4)),
        Role("worker", 3, (*command, "--n=5"), {"N": "5", "M": "5x"}, 0, Limits()),
        Role("evaluator", 1, command, {}, 0, Limits()),
    )


@pytest.mark.parametrize(
    ("policies", "spec", "most"),
    [
        (["", ""], "", 0),
        (["Never", "Never"], "  runPolicy: {backoffLimit: 4}\n", 0),
        (["OnFailure", "OnFailure"], "  runPolicy: {backoffLimit: 4}\n", 4),
        (["OnFailure", "ExitCode"], "  backoffLimit: 5\n", 5),
        (["Always", "OnFailure"], "", None),
    ],
)
def test_restarts(tmp_path: Path, policies: List[str], spec: str, most: int) -> None:
    first, second = (f"restartPolicy: {policy}, " if policy else "" for policy in policies)
    job, reader = read(tmp_path, tfjob(replicas("PS", first), replicas("Worker", second), spec=spec))
    assert (job.restart_max, reader.problems) == (most, [])


def test_the_entrypoint_of_the_image_stands_before_the_arguments(tmp_path: Path) -> None:
    text = tfjob(WORKER).replace("command: [python, m.py]", "args: [--a]")
    job, reader = read(tmp_path, text, ["python", "/m.py"])
    assert (job.roles[0].command, reader.problems) == (("python", "/m.py", "--a"), [])
    assert problems(tmp_path, text) == [
        "tfjob.yaml:6:58: spec.tfReplicaSpecs.Worker.template.spec.containers[0].command: expected a command, "
        "found only args, for the entry point of the image — give the command of the image: "
        '--entrypoint "python /opt/train.py", or --entrypoint "" if it has none, so that the command is `--a`'
    ]


def test_args_are_the_command_of_an_image_without_an_entrypoint(tmp_path: Path) -> None:
    text = tfjob(WORKER).replace("command: [python, m.py]", "args: [python, m.py, '$(A)'], env: [{name: A, value: b}]")
    job, reader = read(tmp_path, text, [])
    assert (job.roles[0].command, reader.problems) == (("python", "m.py", "b"), [])


@pytest.mark.parametrize("entrypoint", [None, []])
def test_a_container_without_any_words_needs_an_entrypoint(tmp_path: Path, entrypoint: Optional[List[str]]) -> None:
    (problem,) = problems(tmp_path, tfjob(WORKER).replace(", command: [python, m.py]", ""), entrypoint)
    assert problem.endswith(
        "expected a command, found only the image's own — give the command of the image: "
        '--entrypoint "python /opt/train.py"'
    )


@pytest.mark.not_fast
def test_a_command_begins_in_the_working_folder_of_its_container(tmp_path: Path) -> None:
    (tmp_path / "tf x").mkdir()
    text = one(container=f", args: [a b], workingDir: '{tmp_path}/tf x'").replace("[python, m.py]", "[echo, $(pwd)]")
    job, reader = read(tmp_path, text)
    assert reader.problems == [] and job.roles[0].command[-4:] == (f"{tmp_path}/tf x", "echo", "$(pwd)", "a b")
    printed = check_output([*job.roles[0].command[:-3], "sh", "-c", 'pwd; echo "$@"', "sh", "a b"], text=True)
    assert printed == f"{tmp_path}/tf x\na b\n"


def test_of_two_variables_with_one_name_the_last_counts(tmp_path: Path) -> None:
    twice = ", env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}, {name: A, value: x}]"
    job, _ = read(tmp_path, tfjob(replicas("Worker", container=twice)))
    assert (job.roles[0].env, job.secrets) == ({"A": "x"}, ())


def one(more: str = "", container: str = "", spec: str = "", kind: str = "Worker") -> str:
    return tfjob(replicas(kind, more, container), spec=spec)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (tfjob(WORKER, replicas("Leader")), "tfReplicaSpecs.Leader: expected only PS, Chief or Master, Worker and"),
        (tfjob(replicas("Chief"), replicas("Master")), "found a second chief, 'Master'"),
        (tfjob(replicas("PS")), "spec.tfReplicaSpecs: expected a Worker or a Chief with at least one replica"),
        (f"{HEAD}spec: {{}}\n", "spec.tfReplicaSpecs: expected a Worker or a Chief"),
        (f"{HEAD}spec: {{tfReplicaSpecs: [a]}}\n", "expected a mapping with the keys PS, Chief, Worker or Evalu"),
        (one("replicas: 20000, "), "Worker.replicas: expected a number of replicas from 0 to 10000, found 20000"),
        (one("replicas: true, "), "Worker.replicas: expected a number of replicas, found true"),
        (one("replicas: 2, ", kind="Chief"), "Chief.replicas: expected a number of replicas from 0 to 1, found 2"),
        (one("restartPolicy: Sometimes, "), "expected Never, OnFailure, Always or ExitCode, found 'Sometimes'"),
        (tfjob(replicas("PS", "restartPolicy: OnFailure, "), WORKER), "PS.restartPolicy: expected one restartPolicy"),
        (one("restartPolicy: OnFailure, ", spec="  backoffLimit: -1\n"), "spec.backoffLimit: expected a number of"),
        (one("restartPolicy: OnFailure, ", spec="  backoffLimit: x\n"), "expected a number of restarts, found 'x'"),
        (one(spec="  enableDynamicWorker: true\n"), "expected a fixed number of workers, found true"),
        (one().replace("tensorflow", "main"), "containers: expected a container named tensorflow, found none"),
        (one().replace("[{name", "{name").replace("]}]", "]}"), "expected a list of containers, found a mapping"),
        (one(container=", args: ['--i={index}']"), "args[0]: expected no name in braces, because the key command"),
        (one(container=", args: [$(TF_CONFIG)]"), "only references to variables with values in the manifest, found"),
        (one(container=", env: [{name: K, valueFrom: {configMapKeyRef: {}}}], args: [$(K)]"), "found $(K) — let the"),
        (one(container=", envFrom: [{configMapRef: {name: c}}], args: [$(K)]"), "found $(K) — let the program read K"),
        (one(container=", env: [{name: TF_CONFIG, value: x}]"), "expected a variable that the launcher does not set"),
        (one(container=", env: [{name: LAUNCH_RUN, value: x}]"), "found LAUNCH_RUN — remove the variable"),
        (one(container=", env: [{name: a-b, value: x}]"), "env[0].name: expected the name of a variable"),
        (one(container=", env: [x]"), "env[0].name: expected the name of a variable"),
        (one(container=", workingDir: w"), "expected an absolute path without names in braces, found 'w'"),
        (one(container=", workingDir: '/{run}'"), "expected an absolute path without names in braces, found '/{run"),
        (one(container=", workingDir: [a]"), "workingDir: expected a folder, found a list"),
        (one(container=", env: {A: b}"), "env: expected a list of variables, found a mapping"),
        (one(container=", args: [[a]]"), "args[0]: expected a text, found a list"),
        (one(container=", resources: {limits: {nvidia.com/gpu: 1.5}}"), "a number of GPUs from 0 to 1024, found 1.5"),
        (one(container=", resources: {limits: {memory: much}}"), "memory: expected an amount of memory such as 4Gi, f"),
        (one(container=", resources: {limits: [1]}"), "resources.limits: expected a mapping, found a list"),
    ],
)  # fmt: skip
def test_a_change_of_meaning_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    found = problems(tmp_path, text)
    assert any(message in each for each in found), found
    assert all(each.startswith("tfjob.yaml:") for each in found)


def test_a_secret_of_one_role_that_is_a_value_of_another_is_refused(tmp_path: Path) -> None:
    secret = ", env: [{name: K, valueFrom: {secretKeyRef: {name: s, key: k}}}]"
    text = tfjob(replicas("PS", container=secret), replicas("Worker", container=", env: [{name: K, value: x}]"))
    assert "expected a variable that comes from a Secret in every role, found 'K'" in problems(tmp_path, text)[0]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (one(spec="  runPolicy: {activeDeadlineSeconds: 60}\n"),
         "tfjob.yaml:5:15: spec.runPolicy.activeDeadlineSeconds: not carried over: add the key deadline_s "
         "to the hosts file"),
        (one("replicas: 2, "),
         "tfjob.yaml:4:1: spec.successPolicy: the run succeeds when every worker has exited with 0, not only worker "
         "0; set success: worker:0 to keep the manifest's rule"),
        (one(spec="  cleanPodPolicy: None\n"), "spec.cleanPodPolicy: tasks that still run when the run ends are"),
        (one(kind="Master"), "Master: the role becomes chief, also in TF_CONFIG"),
        (one("restartPolicy: Always, "), "a task that exits with 0 is not restarted"),
        (one("restartPolicy: OnFailure, "), "a task is restarted at most 3 times, not without limit; see restart.max"),
        (one("restartPolicy: OnFailure, ", spec="  backoffLimit: 2\n"), "restart.max limits the restarts of each task"),
        (one(container=", image: a/b:1"), "containers[0].image: not carried over: hosts run their own programs"),
        (one(container=", workingDir: /w"), "containers[0].workingDir: each task starts in this folder: make"),
        (one(container=", volumeMounts: [{name: d}]"), "containers[0].volumeMounts: not carried over: make these"),
        (one(container=", ports: [{containerPort: 80}]"), "containers[0].ports: not carried over"),
        (one(container=", envFrom: [{secretRef: {name: s}}]"), "containers[0].envFrom: not carried over"),
        (one(container=", resources: {requests: {cpu: 1}}"), "resources.requests: not carried over"),
        (one(container=", resources: {limits: {cpu: 500m}}"), "limits.cpu: not carried over: limits.processors must"),
        (one(container=", resources: {limits: {amd.com/gpu: 1}}"), "limits.amd.com/gpu: not carried over"),
        (one(container="}, {name: sidecar"), "containers[1]: not carried over: only the container named tensorflow"),
        (one(container=", env: [{name: P, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]"),
         "env[0].valueFrom: not carried over: set the variable in env"),
        (one(container=", env: [{name: P, valueFrom: {secretKeyRef: {name: s, key: k}}}]"),
         "secrets: export P before `launch up`; the manifest takes its value from key k of the Secret s"),
        (one().replace("containers:", "volumes: [{name: d}], containers:"), "template.spec.volumes: not carried over"),
        (one().replace("containers:", "initContainers: [{}], affinity: {a: 1}, containers:"), "initContainers: not ca"),
        (one() + "status: {startTime: now}\n", "status: not carried over: it is the state of a job in Kubernetes"),
        (one().replace("name: mnist", "name: mnist, labels: {a: b}"), "metadata.labels: not carried over"),
        (tfjob(WORKER, replicas("PS", "replicas: 0, ")), "tfReplicaSpecs.PS: not carried over: the role has no"),
    ],
)  # fmt: skip
def test_every_loss_has_a_line_with_its_place(tmp_path: Path, text: str, line: str) -> None:
    found = notes(tmp_path, text)
    assert any(line in each for each in found), found
    assert all(each.startswith("tfjob.yaml:") for each in found)


def test_what_is_carried_over_has_no_line(tmp_path: Path) -> None:
    ports = ", ports: [{name: tfjob-port, containerPort: 2222}]"
    assert notes(tmp_path, one(container=ports, spec="  cleanPodPolicy: Running\n  successPolicy: AllWorkers\n")) == []


def test_mistakes_are_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = one("restartPolicy: OnFailure, ", ", args: ['{index}']", "  backoffLimit: x\n")
    assert [each.split(" ")[1] for each in problems(tmp_path, text)] == [
        "spec.backoffLimit:",
        "spec.tfReplicaSpecs.Worker.template.spec.containers[0].args[0]:",
    ]
