"""The proof that a detached run outlives the logins that started it.

On some hosts, the processes of a login end with the login: by systemd's logind with ``KillUserProcesses=yes``, or by an
sshd in a container. So the launcher closes every connection, waits, and asks the lead's agent over a second one which
agents it receives messages from. Their logins are over, and they live. The launcher itself asks the other hosts.
"""

import time
from typing import Any, Dict, List, Mapping, Sequence

from launch.errors import CannotStart, HostProblem, ProblemKind
from launch.fleet import Fleet
from launch.history import status_in
from launch.hosts.channel import Host
from launch.run.start import take_back
from launch.status.run import ENDED

SETTLE_S = 2.0  # for what the end of a login ends; logind sends SIGTERM at once
ANSWER_S = 30.0
ENDED_THERE = "the run's processes there end with the login that started them"
ADVICE = (
    "let root set KillUserProcesses=no in /etc/systemd/logind.conf, or name your user in KillExcludeUsers;"
    " or leave out -d, so that the logins stay"
)


def prove_outliving(fleet: Fleet, run: str, hosts: Sequence[str]) -> List[str]:
    """Prove that a detached run continues without its logins; return a line for each host that gave no proof.

    Raises:
      CannotStart: the run ends with the logins. The error names these hosts, and those where its end is not known.
    """
    remote = [host for host in hosts if not fleet.spec.is_here(host)]
    if not remote or fleet.slurm_job:  # the job of Slurm has the processes
        return []
    for host in remote:
        fleet.hosts[host].close()
    time.sleep(SETTLE_S)

    def ask(host: Host, verb: str) -> Dict[str, Any]:
        return fleet.ask_host(host, verb, fleet.reference(host.name, run), ANSWER_S)

    def ask_lead(host: Host) -> List[str]:
        host.connect()
        return ask(host, "linked").get("hosts", [])

    def ask_status(host: Host) -> Dict[str, Any]:
        if host.name != fleet.lead:  # ``ask_lead`` has logged in there; else this request does
            host.connect()
        return ask(host, "status")

    found, _ = fleet.each(ask_lead, [fleet.lead], interruptible=False)
    linked = {host for hosts in found.values() for host in hosts} - {fleet.lead}
    rest = [host for host in remote if host not in linked and host != fleet.lead]
    answers, problems = fleet.each(ask_status, [fleet.lead, *rest], interruptible=False)
    ended = ended_with_login(answers)
    if ended:
        left = take_back(fleet, run, hosts, ENDED_THERE)
        found_ended = [HostProblem(host, ProblemKind.REFUSED, ENDED_THERE) for host in ended]
        raise CannotStart([*found_ended, *left], ADVICE)
    return [f"{problem}; the run may have ended there with the login" for problem in problems]


def ended_with_login(answers: Mapping[str, Mapping[str, Any]]) -> List[str]:
    """Return the hosts on which the run ended together with its login, by the hosts' answers to ``status``.

    The list is empty where the run has ended by itself. An agent that received SIGTERM at the end of its login has
    reported that its host leaves.
    """
    for host, answer in answers.items():
        status = status_in(host, answer)
        if status is None:  # of a member
            continue
        if status.departed is not None:
            return [status.departed]  # the other hosts' agents end with the run
        if status.state in ENDED and not answer.get("died"):
            return []
    return [host for host, answer in answers.items() if not answer.get("lives")]
