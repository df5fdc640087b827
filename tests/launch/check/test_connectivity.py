"""Rules about closed ways: each names the hosts to examine first, and what opens the way."""

from typing import Any, Dict, List

from launch.agent.network import doors
from launch.check.ways import EXPLAINED, ways
from tests.support.launch.facts import evidence, found, only, plan_of

Facts = Dict[str, Dict[str, Any]]
PLAN = plan_of("ps:0@p1", "ps:1@p2", "worker:0@w1", "worker:1@w2", "worker:2@w3")


def failed(kind: str, *hosts: str, detail: str = "10.0.0.1") -> List[Dict[str, str]]:
    """What a host tells that could not reach the tasks of ``hosts``."""
    return [{"address": f"{host}:2222", "host": host, "kind": kind, "detail": detail} for host in hosts]


def test_every_kind_of_failure_is_explained() -> None:
    kinds = [line.split()[0] for line in (doors.__doc__ or "").splitlines() if line.startswith("    ")]
    assert sorted(EXPLAINED) == sorted(kinds)


def test_a_firewall_that_many_meet_is_one_finding_about_the_host_behind_it() -> None:
    told = {host: {"unreached": failed("timed-out", "p1")} for host in ("w1", "w2", "w3")}
    one = only(ways, evidence(PLAN, told))
    assert (one.kind, one.hosts) == ("timed-out", ("p1",))
    assert one.what == "w[1-3] → p1:2222: no answer (10.0.0.1): a firewall may drop it"
    assert one.mend == ("allow TCP port 2222 from w[1-3]; `ssh p1 sudo nft list ruleset` shows what p1 blocks")


def test_a_host_that_reaches_nobody_is_the_one_to_look_at() -> None:
    one = only(ways, evidence(PLAN, {"w2": {"unreached": failed("timed-out", "p1", "p2")}}))
    assert (one.hosts, one.what.split(": ")[0]) == (("w2",), "w2 → p[1-2]:2222")


def test_a_name_fails_where_it_is_asked_for() -> None:
    told = {host: {"unreached": failed("unresolved", "p1", detail="not known")} for host in ("w1", "w2")}
    one = only(ways, evidence(PLAN, told))
    assert (one.hosts, one.what) == (("w1", "w2"), "w[1-2] → p1:2222: the name has no address there (not known)")
    assert "`ssh w1 getent ahosts p1`" in one.mend


def test_where_nothing_could_listen_no_way_is_called_closed() -> None:
    taken = {"why": "taken by pid 42 (x)", "pid": 42, "run": None}
    told: Facts = {"w1": {"unreached": failed("other", "p1", "p2")}, "p1": {"ports": {"2222": taken}}}
    assert found(ways, evidence(PLAN, told, silent=["p2"])) == []


def test_hosts_that_take_a_name_for_different_addresses_are_told_apart() -> None:
    told = {
        "w1": {"unreached": failed("refused", "p1", detail="10.0.0.1")},
        "w2": {"unreached": failed("refused", "p1", detail="10.9.9.9")},
    }
    assert [line.split(", or ")[1] for line in found(ways, evidence(PLAN, told))] == [
        "10.0.0.1 is another machine",
        "10.9.9.9 is another machine",
    ]


def test_ipv6_addresses_are_not_folded() -> None:
    told = {"w1": {"unreached": [{**failed("refused", "p1")[0], "address": "[fd00::1]:2222"}]}}
    assert only(ways, evidence(PLAN, told)).what.startswith("w1 → [fd00::1]:2222: refused")
