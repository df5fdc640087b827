"""Every task of a TFJob gets a host: one after the other, or a placeholder."""

from typing import List

import pytest

from cluster.protocol.settings import Limits
from launch.errors import UsageError
from launch.tfjob.hosts_file import dealt, parsed_hosts
from launch.tfjob.jobs import Role

ROLES = [Role(role, count, ("a",), {}, 0, Limits()) for role, count in (("ps", 2), ("chief", 1), ("worker", 3))]


def test_trainers_go_round_and_the_ps_begin_at_the_first_host() -> None:
    assert dealt(ROLES, ["a", "b", "c"], None) == {"ps": ["a", "b"], "chief": ["a"], "worker": ["b", "c", "a"]}


def test_the_ps_may_have_hosts_of_their_own() -> None:
    assert dealt(ROLES, None, ["p"]) == {
        "ps": ["p", "p"],
        "chief": ["chief-0.invalid"],
        "worker": [f"worker-{n}.invalid" for n in range(3)],
    }


def test_hosts_are_names_and_ranges() -> None:
    assert parsed_hosts("gpu[01-02], cpu01,fd00::1", "HOSTS") == ["gpu01", "gpu02", "cpu01", "fd00::1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "HOSTS: expected hosts, each once, found none"),
        ("a,b,a", "HOSTS: expected hosts, each once, found a twice"),
        ("a[1-", "HOSTS: expected a host such as gpu01"),
        ("me@a", "HOSTS: expected a host without a user, found 'me@a'; name the user in ssh.user"),
    ],
)
def test_another_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parsed_hosts(text, "HOSTS")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("names", [["a"], [f"h{n}" for n in range(5)]])
def test_every_host_has_its_share_of_the_tasks(names: List[str]) -> None:
    workers = dealt([Role("worker", 10, ("a",), {}, 0, Limits())], names, None)["worker"]
    assert {workers.count(name) for name in names} == {10 // len(names)}
