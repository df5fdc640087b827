"""The guard's rules, and what is made of nft's word; the real nft is in tests/launch/end_to_end."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, List

import pytest

from launch.agent.network import firewall
from launch.agent.network.firewall import Unguarded, ports, raise_guard, rules, standing, ways
from launch.agent.wire.run_request import LeadAddress
from tests.support.agent.requested import run_request, task_request

pytestmark = pytest.mark.not_fast  # starts programs, by what it tests

Nft = Callable[[str], List[str]]
# Answers as nft does: nothing to a line that it takes, and at last the chain that it was asked for.
AGREES = "for line in sys.stdin:\n if 'list' in line: print('table inet t {\\n}', flush=True)"


@pytest.fixture
def nft(tmp_path: Path) -> Nft:
    """An argv that runs Python lines in nft's stead."""

    def make(lines: str) -> List[str]:
        path = tmp_path / "nft.py"
        path.write_text(f"import sys\n{lines}")
        return [sys.executable, str(path)]

    return make


def use(monkeypatch: pytest.MonkeyPatch, *argvs: List[str]) -> None:
    monkeypatch.setattr(firewall, "ways", lambda: list(argvs))


def test_what_comes_from_elsewhere_for_the_run_s_ports_is_dropped_and_nothing_is_accepted() -> None:
    lines = rules("t", [2222, 2223], {"10.0.0.2", "10.0.0.1"}, {"fd00::1"})
    assert lines[0] == "add table inet t { flags owner; }"
    assert "add element inet t four { 10.0.0.1, 10.0.0.2 }" in lines
    assert "add element inet t six { fd00::1 }" in lines
    users = ", ".join(map(str, sorted({0, os.getuid()})))
    assert lines[-3:] == [
        'add rule inet t incoming iifname != "lo" tcp dport { 2222, 2223 } ip saddr != @four drop',
        'add rule inet t incoming iifname != "lo" tcp dport { 2222, 2223 } ip6 saddr != @six drop',
        f'add rule inet t outgoing oifname "lo" tcp dport {{ 2222, 2223 }} meta skuid != {{ {users} }} drop',
    ]


def test_a_thousand_peers_come_in_lines_that_stay_short() -> None:
    lines = rules("t", [1], {f"10.0.{n // 256}.{n % 256}" for n in range(1000)}, set())
    assert len(lines) == 8 + 5 and max(map(len, lines)) < 4000


def test_the_port_of_rank_0_s_program_is_guarded_too() -> None:
    def of(port: str) -> List[int]:
        tasks = [
            task_request(env={"MASTER_PORT": port}, chief=True),
            task_request("worker:1", env={"MASTER_PORT": "9"}),
        ]
        return ports(run_request(*tasks))

    assert of("29500") == [2222, 2222, 29500]
    assert of("none") == of("70000") == [2222, 2222]


def test_the_ports_are_those_of_the_host_s_tasks_and_on_the_lead_s_host_the_one_that_members_dial() -> None:
    tasks = [task_request("ps:0", port=2222), task_request("worker:0", port=2223)]
    request = run_request(*tasks, host="h2", lead=LeadAddress("h2", "h2:2224"))
    assert ports(request) == [2222, 2223, 2224]
    assert ports(replace(request, host="h3")) == [2222, 2223]
    assert ports(replace(request, lead=LeadAddress("h2", None))) == [2222, 2223]


def test_a_plan_without_a_guard_needs_no_nft(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, ["/nowhere/nft"])
    with standing("r-1", [2222], None) as found:
        assert found is None


def test_a_guard_stands_until_it_is_closed(monkeypatch: pytest.MonkeyPatch, nft: Nft) -> None:
    use(monkeypatch, nft(AGREES))
    found = raise_guard("t", ["add table inet t"])
    assert found._nft.poll() is None
    found.close()
    assert found._nft.poll() == 0


def test_where_nft_itself_is_not_allowed_sudo_is_tried(monkeypatch: pytest.MonkeyPatch, nft: Nft) -> None:
    sudo = nft("print('sudo: unable to resolve host gpu01', flush=True)\n" + AGREES)
    use(monkeypatch, ["sh", "-c", "echo 'Operation not permitted (you must be root)'", "-i"], sudo)
    raise_guard("t", []).close()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            "print('Error: Could not process rule: Operation not supported')",
            "Error: Could not process rule: Operation not supported",
        ),
        ("", "it ended without output"),
        ("sys.stdout.write('sudo: a password is required')", "sudo: a password is required"),
    ],
)
def test_a_refusal_has_nft_s_own_words_and_the_next_step(
    monkeypatch: pytest.MonkeyPatch, nft: Nft, lines: str, said: str
) -> None:
    use(monkeypatch, [*nft(lines), "-i"])
    with pytest.raises(Unguarded) as caught:
        raise_guard("t", ["add table inet t"])
    assert "guard: nftables is not possible here (`" in str(caught.value) and f"` answers: {said}" in str(caught.value)
    assert str(caught.value).endswith(
        "; ask an administrator to allow `sudo -n nft` for this user, or remove the key guard"
    )


def test_an_nft_that_never_answers_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch, nft: Nft) -> None:
    use(monkeypatch, nft("sys.stdin.read()"))
    monkeypatch.setattr(firewall, "NFT_S", 0.1)
    with pytest.raises(Unguarded, match="did not answer within"):
        raise_guard("t", [])


def test_a_host_without_nft_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch)
    with pytest.raises(Unguarded, match=r"not possible here \(no nft here\)"):
        raise_guard("t", [])


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ([], []),
        (["sudo"], []),
        (["nft"], [["/bin/nft", "-i"]]),
        (["nft", "sudo"], [["/bin/nft", "-i"], ["/bin/sudo", "-n", "/bin/nft", "-i"]]),
    ],
)
def test_nft_is_run_by_itself_first_and_then_through_sudo(
    monkeypatch: pytest.MonkeyPatch, there: List[str], expected: Any
) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path: f"/bin/{name}" if name in there else None)
    assert ways() == expected


def test_a_peer_that_this_host_does_not_know_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firewall, "resolve", lambda names, timeout_s: {"gpu01": ["10.0.0.1"], "gpu02": "no such name"})
    with pytest.raises(
        Unguarded, match=r"the address of gpu02 is not known on this host \(no such name\); see `getent"
    ):
        firewall.peers(["gpu01", "gpu02"])
    monkeypatch.setattr(firewall, "resolve", lambda names, timeout_s: {"gpu01": ["10.0.0.1", "fe80::1%eth0"]})
    assert firewall.peers(["gpu01"]) == ({"10.0.0.1"}, {"fe80::1"})


def test_whether_a_host_could_guard_is_tried_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch, nft: Nft) -> None:
    use(monkeypatch, nft(AGREES.replace("inet t", f"inet launch_check_{os.getpid()}")))
    assert firewall.refusal() is None
    use(monkeypatch)
    assert firewall.refusal() == ("guard: nftables is not possible here (no nft here)", firewall._ADVICE)
