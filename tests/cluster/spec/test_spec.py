"""What a hosts file that is right means: its tasks, their addresses and GPUs, and its settings."""

from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest

from cluster.protocol.settings import Container, Hook, Limits, Notice
from cluster.spec import Elastic, Restart, Spec, Ssh, load
from cluster.spec.model import is_local
from cluster.task import Checkpoint, Train

Read = Callable[..., Spec]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads a hosts file with the given lines below ``job: digits``."""

    def from_text(text: str, *overrides: str, head: str = "job: digits\n") -> Spec:
        path = tmp_path / "hosts.yaml"
        path.write_text(head + text)
        return load(path, overrides)

    return from_text


@pytest.fixture
def cluster(read: Read) -> Callable[..., Spec]:
    """Reads a hosts file whose ``cluster`` has the given roles."""

    def from_roles(text: str) -> Spec:
        return read("cluster: {" + text + "}")

    return from_roles


def addresses(spec: Spec, role: str = "worker") -> List[str]:
    return [task.address for task in spec.tasks_of(role)]


CONTRACT = """\
name: digits                  # of the run; default: the file's stem
job: digits                   # jobs/digits.py, or a dotted module, or a path to a .py file
args: {hidden: 128}           # handed to the job

cluster:
  ps:     ["cpu[01-02]:2222"]                                     # "host", "host:port", ranges as in pdsh and Slurm
  worker: [{host: "gpu[01-04]", port: 2300, gpus: [0, 1]}]        # or a mapping

train:
  mode: sync                  # or async
  sync: overlapped            # or plain, stock
  steps: 2000                 # absolute global step to stop at
  batch_size: 64              # per tower
  accumulate: 1               # batches of each tower in one step
  towers: auto                # one a GPU; a number on CPU
  backup_workers: 0
  wire: float32               # or bfloat16, float16: how gradients and variables travel
  clip_norm: null
  on_nan: stop                # or ignore
  evaluate_batches: null      # all
  checkpoint: {dir: null, every_s: 60, keep: 5}   # null: under the run's own folder on the chief's host

restart: {max: 3, backoff_s: 1}
python: python3.7             # on the hosts; absolute or on PATH
workdir: ~/.launch            # on the hosts: code, runs, logs
env: {all: {}, ps: {}, worker: {}}
secrets: [AWS_SECRET_ACCESS_KEY]   # names; values come from the launcher's environment, never through argv or a log
ssh: {user: null, port: 22, key: null, gateway: null, config: ~/.ssh/config, known_hosts: ~/.ssh/known_hosts,
      connect_timeout_s: 10, fanout: 32}
"""


def test_a_file_with_every_key_is_read_whole(read: Read, tmp_path: Path) -> None:
    spec = read(CONTRACT, head="")
    assert (spec.path, spec.name, spec.job, spec.command) == (tmp_path / "hosts.yaml", "digits", "digits", None)
    assert (spec.args, spec.python, spec.workdir) == ({"hidden": 128}, "python3.7", "~/.launch")
    assert spec.train == Train(steps=2000)
    assert (spec.restart, spec.ssh, spec.secrets) == (Restart(), Ssh(port=22), ("AWS_SECRET_ACCESS_KEY",))
    assert [task.name for task in spec.tasks] == ["ps:0", "ps:1", "worker:0", "worker:1", "worker:2", "worker:3"]
    assert spec.tasks[0].address == "cpu01:2222" and spec.tasks[0].gpus == ()
    assert spec.tasks[2].address == "gpu01:2300" and spec.tasks[2].gpus == (0, 1)
    assert {task.line for task in spec.tasks_of("worker")} == {7}


def test_what_a_file_leaves_out_has_the_defaults_of_its_nouns(read: Read) -> None:
    spec = read("cluster: {ps: [a], worker: [b]}")
    assert (spec.name, spec.python, spec.workdir) == ("hosts", None, "~/.launch")
    assert (spec.train, spec.restart, spec.ssh) == (Train(), Restart(), Ssh())
    assert (spec.args, spec.secrets) == ({}, ())


def test_a_section_whose_keys_are_all_commented_out_is_as_if_left_out(read: Read) -> None:
    cluster = "cluster: {ps: [a], worker: [b], chief: , evaluator: []}\n"
    sections = "name:\nargs:\ntrain:\nrestart:\npython:\nworkdir:\nenv:\nsecrets:\nssh:\ncommand:\n"
    assert read(cluster + sections) == read("cluster: {ps: [a], worker: [b]}")


def test_a_section_keeps_the_defaults_of_the_keys_it_leaves_out(read: Read) -> None:
    spec = read("cluster: {ps: [a], worker: [b]}\ntrain: {checkpoint: {keep: 2}, towers: 2}\nssh: {port: 2200}")
    assert spec.train == Train(towers=2, checkpoint=Checkpoint(keep=2))
    assert spec.ssh == Ssh(port=2200)


def test_a_program_may_run_without_ps(read: Read) -> None:
    spec = read('command: ["{python}", t.py]\ncluster: {worker: [a]}', head="")
    assert (spec.job, spec.command) == (None, ("{python}", "t.py"))


def test_tasks_are_ordered_by_role_and_then_as_they_are_written(cluster: Read) -> None:
    spec = cluster('worker: ["z[2-3]", a], evaluator: [e], chief: [c], ps: [p]')
    assert [task.host for task in spec.tasks] == ["p", "c", "z2", "z3", "a", "e"]
    assert spec.hosts == ("p", "c", "z2", "z3", "a", "e")
    assert [task.index for task in spec.tasks_of("worker")] == [0, 1, 2]


def test_the_chief_is_the_chief_task_or_else_worker_0(cluster: Read) -> None:
    assert cluster("ps: [p], worker: [a, b]").chief.name == "worker:0"
    assert cluster("ps: [p], worker: [a, b], chief: [c]").chief.name == "chief:0"
    assert cluster("ps: [p], chief: [c]").chief.host == "c"


def test_a_host_appears_once_among_hosts(cluster: Read) -> None:
    assert cluster('ps: ["a[1-2]"], worker: ["a[1-2]"]').hosts == ("a1", "a2")


PORTS: List[Tuple[str, List[str]]] = [
    ("[a, a, b]", ["a:2222", "a:2223", "b:2222"]),
    ('["a:2222", a]', ["a:2222", "a:2223"]),
    ('[a, a, "a:2223"]', ["a:2222", "a:2224", "a:2223"]),
    ("[{host: a, count: 3}]", ["a:2222", "a:2223", "a:2224"]),
    ("[{host: a, count: 2, port: 3000}, a]", ["a:3000", "a:3001", "a:2222"]),
    ('[{host: "a[1-2]", count: 2}]', ["a1:2222", "a1:2223", "a2:2222", "a2:2223"]),
    ('["a[1-2]:70"]', ["a1:70", "a2:70"]),
    ('["10.0.0.[1-2]"]', ["10.0.0.1:2222", "10.0.0.2:2222"]),
    ("[{host: a, address: a.fast}]", ["a.fast:2222"]),
    ('[{host: "a[1-2]", address: "10.0.0.[7-8]"}]', ["10.0.0.7:2222", "10.0.0.8:2222"]),
    ('["fd00::7", "[fd00::7]:99"]', ["[fd00::7]:2222", "[fd00::7]:99"]),
]


@pytest.mark.parametrize(("entries", "expected"), PORTS)
def test_ports_count_up_from_2222_on_each_host_beside_those_that_are_given(
    cluster: Read, entries: str, expected: List[str]
) -> None:
    spec = cluster(f"ps: [p], worker: {entries}")
    assert addresses(spec) == expected
    assert [task.port for task in spec.tasks_of("worker")] == [int(address.rsplit(":")[-1]) for address in expected]


def test_ports_count_up_in_the_order_of_the_file_across_roles(cluster: Read) -> None:
    spec = cluster("worker: [a], ps: [a]")
    assert (addresses(spec), addresses(spec, "ps")) == (["a:2222"], ["a:2223"])


def test_all_names_of_this_machine_are_one_host_that_needs_no_ssh(cluster: Read) -> None:
    spec = cluster('ps: [127.0.0.1], worker: [localhost, "::1"]')
    assert addresses(spec, "ps") + addresses(spec) == ["127.0.0.1:2222", "localhost:2223", "[::1]:2224"]
    assert spec.hosts == ("127.0.0.1",)
    assert all(is_local(task.host) for task in spec.tasks)


def test_a_task_on_this_machine_joins_others_with_an_address_that_they_can_reach(cluster: Read) -> None:
    spec = cluster("ps: [{host: localhost, address: desk.lan}], worker: [a]")
    assert addresses(spec, "ps") == ["desk.lan:2222"]
    assert [is_local(task.host) for task in spec.tasks] == [True, False]


GPUS: List[Tuple[str, List[Any]]] = [
    ("ps: [a], worker: [a, a]", [(), "share", "share"]),
    ("ps: [a], chief: [a], worker: [a], evaluator: [a]", [(), "share", "share", "share"]),
    ("ps: [{host: a, gpus: 1}], worker: [a]", [(0,), "share"]),
    ("ps: [a], worker: [{host: a, gpus: all}]", [(), "all"]),
    ("ps: [a], worker: [{host: a, gpus: none}]", [(), ()]),
    ("ps: [a], worker: [{host: a, gpus: []}]", [(), ()]),
    ("ps: [a], worker: [{host: a, gpus: 0}]", [(), ()]),
    ("ps: [a], worker: [{host: a, gpus: 2}, {host: a, gpus: 1}]", [(), (0, 1), (2,)]),
    ("ps: [a], worker: [{host: a, gpus: 2}, {host: a, gpus: [1, 3]}]", [(), (0, 2), (1, 3)]),
    ("ps: [a], worker: [{host: a, gpus: 2, count: 2}]", [(), (0, 1), (2, 3)]),
    ('ps: [a], worker: [{host: "g[1-2]", gpus: [0]}]', [(), (0,), (0,)]),
    ("ps: [a], worker: [{host: a, gpus: all}, {host: a, gpus: none}]", [(), "all", ()]),
]


@pytest.mark.parametrize(("roles", "expected"), GPUS)
def test_gpus_are_what_the_entry_says_or_none_for_ps_and_a_share_for_the_others(
    cluster: Read, roles: str, expected: List[Any]
) -> None:
    assert [task.gpus for task in cluster(roles).tasks] == expected


def test_an_entry_s_env_wins_over_its_role_s_and_that_over_all_s(read: Read) -> None:
    spec = read(
        "cluster: {ps: [p], worker: [{host: a, env: {C: entry}}, b]}\n"
        "env: {all: {A: all, B: all, C: all}, worker: {B: worker, C: worker}}"
    )
    everywhere: Dict[str, str] = {"A": "all", "B": "all", "C": "all"}
    assert spec.tasks[0].env == everywhere
    assert spec.tasks[1].env == {"A": "all", "B": "worker", "C": "entry"}
    assert spec.tasks[2].env == {"A": "all", "B": "worker", "C": "worker"}


def test_an_entry_s_limits_win_over_its_role_s_key_by_key_and_null_lifts_one(read: Read) -> None:
    spec = read(
        "cluster: {ps: [p], worker: [{host: a, limits: {nice: null, processors: 2}}, b], evaluator: [e]}\n"
        "limits: {all: {memory_gib: 8, nice: 5}, worker: {memory_gib: 1.5}, evaluator: {memory_gib: null, nice: null}}"
    )
    assert [task.limits for task in spec.tasks] == [
        Limits(memory_gib=8, nice=5), Limits(memory_gib=1.5, processors=2), Limits(memory_gib=1.5, nice=5), None,
    ]  # fmt: skip


def test_numbers_and_booleans_in_env_become_the_text_that_was_written(read: Read) -> None:
    env = "{A: 1.10, B: true, C: 010, D: 'x y', E: no, F: 1e3, G: ''}"
    spec = read(f"cluster: {{ps: [p], worker: [a]}}\nenv: {{all: {env}}}")
    assert spec.tasks[0].env == {"A": "1.10", "B": "true", "C": "010", "D": "x y", "E": "no", "F": "1e3", "G": ""}


def test_an_entry_s_python_wins_over_the_file_s(read: Read) -> None:
    spec = read("python: python3.8\ncluster: {ps: [{host: p, python: ~/py/bin/python}], worker: [a]}")
    assert (spec.python, [task.python for task in spec.tasks]) == ("python3.8", ["~/py/bin/python", "python3.8"])


def test_ten_thousand_tasks_are_read(cluster: Read) -> None:
    spec = cluster('ps: [{host: "gpu[0001-5000]", port: 3000}], worker: ["gpu[0001-5000]"]')
    assert (len(spec.tasks), len(spec.hosts)) == (10_000, 5_000)
    assert spec.tasks[-1].address == "gpu5000:2222"


def test_tensorflow_s_own_synchronous_steps_may_be_chosen_with_backup_workers(read: Read) -> None:
    spec = read("cluster: {ps: [a], worker: [b, c]}\ntrain: {sync: stock, backup_workers: 1}")
    assert (spec.train.sync, spec.train.backup_workers) == ("stock", 1)


def test_a_run_is_elastic_where_the_file_says_so(read: Read) -> None:
    cluster = "cluster: {ps: [a], worker: [a, b]}\n"
    assert read(cluster).elastic is None
    assert read(cluster + "elastic: {min_workers: 2}").elastic == Elastic(2)
    assert read(cluster + "elastic: {min_workers: 2}", "elastic=null").elastic is None


def test_spares_are_ps_numbered_after_those_that_a_run_begins_with(read: Read) -> None:
    spec = read('cluster: {ps: [a, b], worker: [a]}\nspares: [b, {host: "c[1-2]", port: 9}]\nelastic: {min_workers: 1}')
    assert [(task.name, task.address) for task in spec.tasks if task.spare] == [
        ("ps:2", "b:2223"), ("ps:3", "c1:9"), ("ps:4", "c2:9"),
    ]  # fmt: skip
    assert [task.name for task in spec.tasks_of("ps")] == ["ps:0", "ps:1"]
    assert spec.hosts == ("a", "b", "c1", "c2")


HOOKS = [
    ("'https://h/'", [Hook("failed", url="https://h/")]),
    ("'{URL}'", [Hook("failed", url="{URL}")]),
    ("[page, '7', '{b}']", [Hook("failed", ("page", "7", "{b}"))]),
    ("{command: [page]}", [Hook("failed", ("page",))]),
    ("{url: 'https://h/', headers: {A: 'b {URL}'}}", [Hook("failed", (), "https://h/", {"A": "b {URL}"})]),
    ("[{url: '{URL}'}, {command: [page]}]", [Hook("failed", url="{URL}"), Hook("failed", ("page",))]),
    ("null", []),
]


@pytest.mark.parametrize(("written", "expected"), HOOKS)
def test_a_receiver_is_a_url_a_command_a_mapping_or_a_list_of_mappings(
    read: Read, written: str, expected: List[Hook]
) -> None:
    spec = read(f"cluster: {{ps: [a], worker: [a]}}\nsecrets: [URL]\non: {{failed: {written}}}")
    assert list(spec.hooks) == expected


def test_a_notice_is_a_command_with_an_interval(read: Read) -> None:
    cluster = "cluster: {ps: [a], worker: [a]}\n"
    assert read(cluster).notice is None
    assert read(cluster + "notice: {command: [ask, '7']}").notice == Notice(("ask", "7"), 5)
    assert read(cluster + "notice: {command: [ask], every_s: 60}").notice == Notice(("ask",), 60)


def test_a_container_has_an_image_and_what_else_the_file_gives(read: Read) -> None:
    cluster = "cluster: {ps: [a], worker: [a]}\n"
    assert read(cluster).container is None
    assert read(cluster + "container: {image: tf}").container == Container("tf", "python3", None, ())
    given = read(cluster + "container: {image: /t.sif, runtime: apptainer, python: py, args: [-B, /d]}").container
    assert given == Container("/t.sif", "py", "apptainer", ("-B", "/d"))


def test_events_share_a_receiver_by_an_anchor(read: Read) -> None:
    spec = read("cluster: {ps: [a], worker: [a]}\non: {failed: &chat {url: 'https://h/'}, stopped: *chat}")
    assert spec.hooks == (Hook("failed", url="https://h/"), Hook("stopped", url="https://h/"))


@pytest.mark.parametrize(
    ("head", "line", "folder"),
    [
        ("job: digits\n", "", "task"), ("job: digits\n", "folder: run", "run"), ("command: [train]\n", "", "run"),
        ("command: [train]\n", "folder: task", "task"), ("command: [train]\n", "folder: null", "run"),
    ],
)  # fmt: skip
def test_the_programs_of_a_host_share_a_folder_and_those_of_a_job_do_not(
    read: Read, head: str, line: str, folder: str
) -> None:
    assert read(f"cluster: {{ps: [a], worker: [b]}}\n{line}\n", head=head).folder == folder
