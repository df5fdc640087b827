"""What is reported: grouped by finding, hosts folded, short for many hosts."""

import json
import time
from dataclasses import replace

from launch.check.report import as_values, judge, lines
from launch.errors import HostProblem, ProblemKind
from launch.plan.plan import Plan
from tests.support.launch.facts import evidence, plan_of, versions


def large(workers: int) -> Plan:
    return plan_of("ps:0@p1", *(f"worker:{n - 1}@w{n}" for n in range(1, workers + 1)))


def test_hosts_that_are_fine_are_one_line_however_many() -> None:
    verdict = judge(evidence(large(64), {}))
    assert verdict.ok
    assert lines(verdict)[-1] == "healthy: p1,w[1-64] (65 of 65 hosts): Python 3.7.16, TensorFlow 1.15.0, numpy 1.19.5"
    assert len(lines(verdict)) == 2


def test_what_is_wrong_alike_on_many_hosts_is_one_finding_with_its_mend_on_a_line_of_its_own() -> None:
    gone = [HostProblem(f"w{n}", ProblemKind.UNREACHABLE, "this machine cannot resolve the name") for n in (60, 61)]
    told_of = {f"w{n}": {"proxies": ["http_proxy"]} for n in range(1, 65)}
    up = {"run": {"run": "r-0", "pid": 4, "code": {}}}
    shown = lines(judge(evidence(large(64), {**told_of, "p1": up, "w64": up}, gone, ["w60", "w61"])))
    assert shown[:4] == [
        "w[60-61]: this machine cannot resolve the name",
        "    see `ssh w60 true`",
        "p1,w64: r-0 is up",
        "    see it with `launch status r.yaml`, end it with `launch down r.yaml`",
    ]
    assert "note: w[1-59,62-63]: proxy set there: http_proxy; tasks run without a proxy" in shown


def test_commands_reach_hosts_as_the_launcher_does() -> None:
    gone = [HostProblem(f"w{n}", ProblemKind.UNREACHABLE, "no step there") for n in (60, 61)]
    plan = large(64)
    by_slurm = evidence(replace(plan, spec=replace(plan.spec, transport="slurm")), {}, gone, ["w60", "w61"])
    assert lines(judge(by_slurm))[:2] == ["w[60-61]: no step there", "    see `srun --overlap -w w60 true`"]


def test_a_version_that_healthy_hosts_do_not_share_is_not_claimed() -> None:
    of = evidence(
        large(2), {"w2": {"gpus": {"driver": "535.1", "gpus": []}}, "p1": {"versions": versions(python="3.7.15")}}
    )
    assert lines(judge(of))[-1] == "healthy: w[1-2] (2 of 3 hosts): Python 3.7.16, TensorFlow 1.15.0, numpy 1.19.5"


def test_where_nobody_is_healthy_that_is_said() -> None:
    plan = plan_of("worker:0@w1", command=("a",))
    verdict = judge(evidence(plan, {}, [HostProblem("w1", ProblemKind.UNREACHABLE, "no SSH")], ["w1"]))
    assert lines(verdict)[-1] == "healthy: none of 1 hosts"


def test_the_json_has_every_host_and_every_finding() -> None:
    problem = HostProblem("w2", ProblemKind.UNREACHABLE, "no SSH there", advice="check that the host is up")
    values = json.loads(json.dumps(as_values(judge(evidence(large(2), {}, [problem], ["w2"])))))
    assert values["ok"] is False
    assert values["findings"] == [
        {
            "kind": "unreachable",
            "hosts": ["w2"],
            "what": "no SSH there",
            "mend": "see `ssh w2 true`",
        }
    ]
    w1, _, w2 = values["hosts"]
    assert (w1["host"], w1["ok"], w1["tensorflow"]) == ("w1", True, "1.15.0")
    assert (w2["host"], w2["ok"], w2["answered"], w2["python"]) == ("w2", False, False, None)
    assert [note["kind"] for note in values["notes"]] == ["open-ports"]


def test_ten_thousand_tasks_are_judged_in_seconds() -> None:
    plan = plan_of(*(f"ps:{n}@p{n}" for n in range(500)), *(f"worker:{n}@w{n}" for n in range(9500)))
    closed = [{"address": "p7:2222", "host": "p7", "kind": "timed-out", "detail": "10.0.0.7"}]
    of = evidence(plan, {f"w{n}": {"unreached": closed} for n in range(9500)})
    began = time.process_time()
    shown = lines(judge(of))
    assert time.process_time() - began < 10.0
    assert shown[0] == "p7: w[0-9499] → p7:2222: no answer (10.0.0.7): a firewall may drop it"
