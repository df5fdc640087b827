"""Rules about one host: each is silent where all is well, and names what is wrong and what mends it."""

from typing import Any, Dict, List

import pytest

from cluster.protocol.settings import Container, Hook, Notice
from launch.agent.wire.check_request import PortHolder
from launch.check import host_rules
from launch.check.findings import Note, Rule, Survey
from launch.check.report import RULES, judge
from tests.support.launch.facts import disk, evidence, found, only, plan_of, versions

PLAN = plan_of("ps:0@p", "worker:0@w")
PROGRAM = plan_of("ps:0@p", "worker:0@w", command=("train",))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_nothing_is_found_where_all_is_well(rule: Rule) -> None:
    assert [one for one in rule(evidence(PLAN, {})) if not isinstance(one, Note)] == []


def test_a_python_without_tensorflow_is_named_with_the_command_that_installs_it() -> None:
    broken = versions(tensorflow=None)
    broken["tensorflow"] = {"error": "ModuleNotFoundError: No module named 'tensorflow'"}
    one = only(host_rules.python, evidence(PLAN, {"w": {"versions": broken}}))
    assert (one.kind, one.hosts) == ("tensorflow", ("w",))
    assert one.what == "TensorFlow cannot be imported by /py: ModuleNotFoundError: No module named 'tensorflow'"
    assert "`ssh w /py -m pip install tensorflow-gpu==1.15`" in one.mend


def test_a_program_of_others_may_do_without_tensorflow() -> None:
    assert found(host_rules.python, evidence(PROGRAM, {"w": {"versions": versions(tensorflow="no tensorflow")}})) == []


def test_a_python_that_cannot_start_is_named_once() -> None:
    error = {"error": "cannot start /x: No such file or directory"}
    told = {"w": {"versions": {"environment_ready": True, "python": error}}}
    assert found(host_rules.python, evidence(PLAN, told)) == ["w: python: cannot start /x: No such file or directory"]


def test_an_environment_that_was_not_built_is_mended_by_setup() -> None:
    told = {"w": {"versions": {"environment_ready": False, "python": {"error": "cannot start it"}}}}
    one = only(host_rules.python, evidence(PLAN, told))
    assert (one.kind, one.mend) == ("environment", "build it with `launch setup r.yaml`")


def test_a_taken_port_is_named_with_its_task_and_holder() -> None:
    held = {"why": "taken by pid 42 (python a.py)", "pid": 42, "run": None}
    one = only(host_rules.ports, evidence(PLAN, {"p": {"ports": {"2222": held}}}))
    assert (one.hosts, one.what) == (("p",), "port 2222 of ps:0 is taken by pid 42 (python a.py)")
    assert one.mend == "end it with `ssh p kill 42`, or choose another port (key port)"


def test_on_this_machine_alone_free_ports_are_the_way_beside_another_run() -> None:
    held = PortHolder("taken by a process of another user", None, None)
    way = "choose another port (key port), or add --local, which takes free ports"
    assert host_rules._free_it("localhost", held) == way


@pytest.mark.parametrize(
    ("held", "mend"),
    [
        ({"why": "taken by pid 42 (x)", "pid": 42, "run": "other-1"}, "it belongs to other-1: end that run with"),
        ({"why": "taken by a process of another user", "pid": None, "run": None}, "choose another port"),
        ({"why": "Permission denied"}, "choose another port"),
    ],
)
def test_what_frees_a_port_depends_on_who_holds_it(held: Any, mend: str) -> None:
    assert only(host_rules.ports, evidence(PLAN, {"p": {"ports": {"2222": held}}})).mend.startswith(mend)


def test_a_port_that_connections_may_get_is_a_note_with_the_reservation_that_keeps_the_others() -> None:
    lent = {"ports": [40000, 40001], "first": 32768, "last": 60999, "reserved": "8080,9148-9150"}
    one = only(host_rules.ephemeral_ports, evidence(PLAN, {"p": {"ephemeral": lent}}))
    assert isinstance(one, Note) and (one.kind, one.hosts) == ("ephemeral-port", ("p",))
    assert one.what == (
        "ports 40000, 40001: the kernel gives ports 32768 to 60999 to outgoing connections, so a connection may hold "
        "such a port when a task starts"
    )
    assert one.mend == (
        "choose ports below 32768, or reserve ports 40000, 40001 on each boot: "
        "`ssh p sudo sysctl -w net.ipv4.ip_local_reserved_ports=8080,9148-9150,40000,40001`"
    )


def test_a_run_that_is_up_is_one_finding_and_not_one_for_each_of_its_ports() -> None:
    task = {"why": "taken by pid 42 (x)", "pid": 42, "run": "r-0"}
    agent = {"why": "taken by pid 41 (x)", "pid": 41, "run": None}
    up = {"run": "r-0", "pid": 41, "code": {}}
    of = evidence(PLAN, {"w": {"ports": {"2222": task, "2223": agent}, "run": up}})
    assert found(host_rules.ports, of) == []
    assert found(host_rules.run_up, of) == ["w: run-up: r-0 is up"]
    assert "`launch down r.yaml`" in only(host_rules.run_up, of).mend


def test_a_gpu_that_is_not_there_booked_or_in_use_is_named_with_its_task() -> None:
    plan = plan_of("ps:0@p", "worker:0@w", gpus=(0, 1, 2))
    lacking = "worker:0: expected GPU 0, found 0 GPU(s) on this host"
    assert found(host_rules.gpus, evidence(plan, {})) == [f"w: gpu: {lacking}"]
    gpus: List[Any] = [
        {"uuid": "a", "name": "V100", "booked": "other-1 (agent pid 9)", "processes": ["pid 7 (x), 9 MiB"]},
        {"uuid": "b", "name": "V100", "booked": None, "processes": ["pid 8 (y), 12 MiB"]},
        {"uuid": "c", "name": "V100", "booked": None, "processes": []},
    ]
    told: Any = {"gpus": {"driver": "535.1", "gpus": gpus}}
    assert found(host_rules.gpus, evidence(plan, {"w": told})) == [
        "w: gpu: GPU 0 of worker:0 is held by other-1 (agent pid 9)",
        "w: gpu: GPU 1 of worker:0 is used by pid 8 (y), 12 MiB",
    ]
    up = {"run": "r-0", "pid": 41, "code": {}}
    assert found(host_rules.gpus, evidence(plan, {"w": {**told, "run": up}})) == []


def test_a_gpu_whose_memory_fails_is_a_finding_and_one_that_is_slowed_a_note() -> None:
    plan = plan_of("ps:0@p", "worker:0@w", gpus=(0, 1))
    sound: Dict[str, Any] = {"uuid": "a", "name": "V100", "booked": None, "processes": []}
    gpus: List[Any] = [{**sound, "memory_errors": 0, "slowed": True}, {**sound, "uuid": "b", "memory_errors": 2}]
    of = evidence(plan, {"w": {"gpus": {"driver": "535.1", "gpus": gpus}}})
    slowed, failing = sorted(host_rules.gpus(of), key=lambda one: one.what)
    assert isinstance(slowed, Note) and slowed.what.startswith("GPU 0 of worker:0 runs at a reduced clock")
    assert not isinstance(failing, Note)
    assert failing.what == (
        "GPU 1 of worker:0: expected intact memory, found 2 uncorrectable memory errors since the driver loaded"
    )
    assert "`ssh w sudo nvidia-smi --gpu-reset -i b`" in failing.mend


def test_a_limit_that_a_host_cannot_enforce_is_a_finding_and_one_that_it_watches_is_a_note() -> None:
    told = {"limits": {"problems": ["ps:0: limits.nice: Permission denied"], "notes": ["memory_gib is watched"]}}
    of = evidence(PLAN, {"p": told})
    assert found(host_rules.limits, of) == [
        "p: limits: ps:0: limits.nice: Permission denied", "p: limits: memory_gib is watched",
    ]  # fmt: skip
    assert [isinstance(one, Note) for one in host_rules.limits(of)] == [False, True]
    assert not judge(of).ok and judge(evidence(PLAN, {"p": {"limits": {"problems": [], "notes": ["x"]}}})).ok


def test_the_limits_of_a_run_that_is_up_are_no_finding_of_a_check() -> None:
    up = {"run": "r-0", "pid": 41, "code": {}}
    told = {"limits": {"problems": ["expected 8 processors, found 0"], "notes": []}, "run": up}
    assert found(host_rules.limits, evidence(PLAN, {"p": told})) == []


@pytest.mark.parametrize(
    ("offset_s", "error_s", "what"),
    [
        (90.0, 0.001, "its clock is 90.0 s ahead of this machine's (± 0.001 s)"),
        (-2.5, 0.5, "its clock is 2.5 s behind this machine's (± 0.500 s)"),
    ],
)
def test_a_clock_that_is_off_is_named_with_how_well_that_is_known(offset_s: float, error_s: float, what: str) -> None:
    one = only(host_rules.clock, evidence(PLAN, {"w": {"clock": {"offset_s": offset_s, "error_s": error_s}}}))
    assert (one.what, one.mend) == (what, "`ssh w sudo timedatectl set-ntp true`")


def test_a_clock_is_not_blamed_for_a_slow_connection() -> None:
    assert found(host_rules.clock, evidence(PLAN, {"w": {"clock": {"offset_s": 2.5, "error_s": 2.0}}})) == []


def test_a_folder_that_is_full_or_closed_is_named() -> None:
    told = {"disks": {"~/w": disk(free_bytes=10**8), "/c": {"error": "Read-only"}, "/d": disk(writable=False)}}
    assert found(host_rules.disks, evidence(PLAN, {"w": told})) == [
        "w: disk: /c cannot be used: Read-only",
        "w: disk: /d cannot be used: it is not writable",
        "w: disk: ~/w: expected at least 1000 MB free, found 100 MB free",
    ]


def test_a_folder_that_takes_no_more_files_is_named_and_one_without_a_count_of_them_is_not() -> None:
    told = {"disks": {"/a": disk(inodes=100, free_inodes=1), "/b": disk(inodes=0, free_inodes=0)}}
    assert found(host_rules.disks, evidence(PLAN, {"w": told})) == [
        "w: disk: /a: expected free inodes for new files, found 1 of 100"
    ]


def test_a_run_that_has_started_needs_less_room_than_one_that_is_to_start() -> None:
    small = Survey({"w": evidence(PLAN, {"w": {"disks": {"/s": disk(bytes=10**8, free_bytes=10**7)}}}).facts["w"]})
    assert [one.kind for one in host_rules.disks(small)] == ["disk"]
    assert list(host_rules.disks(small, started=True)) == []


def test_a_fact_that_did_not_come_is_a_finding_and_hides_no_other() -> None:
    gaps = [
        {"section": "gpus", "why": "not done within 9 s", "late": True},
        {"section": "run", "why": "ValueError: no", "late": False},
    ]
    told: Any = {"versions": None, "gpus": None, "disks": {}, "gaps": gaps, "proxies": ["http_proxy"]}
    of = evidence(PLAN, {"w": told})
    assert found(host_rules.gaps, of) == [
        "w: slow: its answer lacks section gpus: not done within 9 s",
        "w: unreachable: its answer lacks section run: ValueError: no",
    ]
    verdict = judge(of)
    assert not verdict.ok and verdict.healthy == ("p",)
    assert "proxy" in [note.kind for note in verdict.notes]


def test_a_program_that_is_not_there_is_named() -> None:
    assert found(host_rules.programs, evidence(PROGRAM, {"w": {"missing_programs": ["train"]}})) == [
        "w: program: no program train on this host"
    ]
    along = plan_of("worker:0@a", command=("bin/train",))
    assert found(host_rules.programs, evidence(along, {})) == [
        "a: program: bin/train is not in the shipped folder of r.yaml"
    ]


def test_a_program_of_a_hook_that_is_not_there_is_named_with_its_own_key() -> None:
    plan = plan_of("ps:0@p", "worker:0@w", hooks=(Hook("failed", ("page",)), Hook("failed", ("bin/tell",))))
    own, shipped = host_rules.programs(evidence(plan, {"w": {"missing_programs": ["page"]}}))
    assert (own.hosts, own.what) == (("w",), "no program page on this host")
    assert own.mend == "install it, or write its path into on"
    assert (shipped.hosts, shipped.mend) == (("w",), "put it there, or write its path on the hosts into on")
    assert shipped.what == "bin/tell is not in the shipped folder of the job"
    asking = plan_of("ps:0@p", "worker:0@w", notice=Notice(("ask",)))
    one = only(host_rules.programs, evidence(asking, {"p": {"missing_programs": ["ask"]}}))
    assert (one.hosts, one.mend) == (("p",), "install it, or write its path into notice")


def test_a_proxy_is_told_and_is_not_wrong() -> None:
    one = only(host_rules.proxies, evidence(PLAN, {"w": {"proxies": ["http_proxy"]}}))
    assert isinstance(one, Note) and "http_proxy" in one.what


def test_a_guard_that_a_host_cannot_have_is_told_with_what_mends_it() -> None:
    one = only(
        host_rules.guard,
        evidence(PLAN, {"w": {"unguarded": ["guard: nftables is not possible here (no nft)", "get it"]}}),
    )
    assert (one.kind, one.hosts, one.mend) == ("guard", ("w",), "get it")
    assert one.what == "guard: nftables is not possible here (no nft)"


def test_a_container_that_cannot_run_is_named_with_the_next_step() -> None:
    one = only(host_rules.container, evidence(PLAN, {"w": {"container": ["no image tf", "`podman pull tf`"]}}))
    assert (one.kind, one.hosts, one.what, one.mend) == ("container", ("w",), "no image tf", "`podman pull tf`")
    assert found(host_rules.container, evidence(PLAN, {})) == []


def test_what_the_python_of_an_image_lacks_is_to_be_added_to_the_image() -> None:
    plan = plan_of("ps:0@p", "worker:0@w", container=Container("tf"))
    one = only(host_rules.python, evidence(plan, {"w": {"versions": versions(numpy="no module")}}))
    assert one.mend == "add numpy to the image tf, or name another Python there with the key container.python"
    broken = {"versions": {**versions(), "python": {"error": "not found"}}}
    assert only(host_rules.python, evidence(plan, {"w": broken})).mend.endswith("with the key container.python")
