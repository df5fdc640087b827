"""A host is asked about what its own tasks need, and nothing secret goes along."""

import json
from pathlib import Path

from cluster.protocol.settings import Container, Hook, Notice
from cluster.protocol.typed_json import to_values
from cluster.spec import load
from launch.check.interview import requests, shipped_programs
from launch.hosts.bundle import JobCode
from launch.plan.plan import make_plan
from tests.support.launch.facts import plan_of

WORDS = ("call", "answer")


def test_the_lead_listens_for_the_other_agents_too() -> None:
    asked = requests(plan_of("ps:0@p0", "worker:0@w0", "worker:1@w1"), WORDS, 60.0)
    assert {host: list(request.ports) for host, request in asked.items()} == {
        "w0": [2222, 2223],
        "p0": [2222],
        "w1": [2222],
    }


def test_each_name_is_resolved_once_whatever_listens_there() -> None:
    asked = requests(plan_of("ps:0@p0", "worker:0@w0", "worker:1@w1"), WORDS, 60.0)
    assert asked["p0"].names == ("w0", "w1")


def test_python_is_asked_with_the_variables_of_the_tasks_and_no_secret(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(
        "job: digits\ncluster: {ps: [a], worker: [a]}\nsecrets: [TOKEN]\n"
        "env: {worker: {LD_LIBRARY_PATH: /opt/cuda, CUDA_CACHE_PATH: /c}}\n"
    )
    plan = make_plan(load(tmp_path / "r.yaml"), JobCode(Path("."), "digits.py"), "r-1", "py")
    asked = requests(plan, WORDS, 60.0)["a"]
    assert asked.facts.env["LD_LIBRARY_PATH"] == "/opt/cuda"
    assert not [name for name in asked.facts.env if name.startswith("LAUNCH_")]
    assert "TOKEN" not in json.dumps(to_values(asked))


def test_a_program_is_looked_for_on_the_host_unless_it_goes_along() -> None:
    own = plan_of("worker:0@a", command=("train",))
    assert requests(own, WORDS, 60.0)["a"].programs == {"train": None}
    assert shipped_programs(own) == []
    along = plan_of("worker:0@a", command=("bin/train",))
    assert requests(along, WORDS, 60.0)["a"].programs == {}
    assert shipped_programs(along) == ["bin/train"]


def test_commands_of_hooks_are_looked_for_on_the_lead_and_that_of_a_notice_everywhere() -> None:
    hooks = (Hook("failed", ("page", "7")), Hook("stopped", ("bin/tell",)), Hook("started", url="https://h/"))
    plan = plan_of("ps:0@p0", "worker:0@w0", hooks=hooks, notice=Notice(("ask",)))
    asked = requests(plan, WORDS, 60.0)
    assert "page" in asked["w0"].programs and asked["w0"].programs["page"] is None
    assert not {"page", "bin/tell"} & set(asked["p0"].programs)
    assert all("ask" in request.programs for request in asked.values())
    assert shipped_programs(plan) == ["bin/tell"]


def test_a_program_in_a_container_is_the_images_and_so_is_the_python() -> None:
    plan = plan_of("ps:0@p0", "worker:0@w0", container=Container("tf", python="py"), notice=Notice(("ask",)))
    asked = requests(plan, WORDS, 60.0)
    assert asked["w0"].programs == {"ask": None}
    assert {request.facts.container for request in asked.values()} == {Container("tf", "py")}
    along = plan_of("worker:0@w0", command=("bin/train",), container=Container("tf"))
    assert shipped_programs(along) == []


def test_names_of_this_machine_are_one_place() -> None:
    asked = requests(plan_of("ps:0@localhost", "worker:0@127.0.0.1"), WORDS, 60.0)
    assert set(asked["localhost"].here) == {"localhost", "127.0.0.1"}
    apart = requests(plan_of("ps:0@a", "worker:0@b"), WORDS, 60.0)
    assert apart["a"].here == ("a",)
