"""Limits in a container: those that it inherits, those that others enforce, and those that nothing enforces."""

from cluster.protocol.settings import Limits
from launch.agent.containers.command import RunContainers
from launch.agent.limits.enforcement import LimitedHost, agree

HOST = LimitedHost(1 << 40, {0, 1}, {}, refusal=lambda enforcement: None)


def container(runtime: str) -> RunContainers:
    return RunContainers(runtime, runtime, "tf", (), ("/w",), (0, 0))


def test_limits_that_podman_and_docker_do_not_pass_on_are_refused() -> None:
    limits = {"worker:0": Limits(processors=1, nice=5)}
    for runtime in ("podman", "docker"):
        (problem,) = agree(limits, lambda processor: True, HOST, container(runtime)).problems
        assert problem.startswith("worker:0: limits.processors, limits.nice: expected apptainer")
        assert f"found {runtime}" in problem
    for inherits in (container("apptainer"), None):
        assert agree(limits, lambda processor: True, HOST, inherits).problems == ()


def test_the_agent_watches_the_memory_of_a_container_outside_its_groups_and_says_so() -> None:
    terms = agree({"ps:0": Limits(memory_gib=1, nofile=64)}, lambda _: True, HOST, container("docker"))
    assert terms.place is None and terms.problems == ()
    assert terms.notes[0].endswith("the kernel limits no task here (docker has its own control groups)")
