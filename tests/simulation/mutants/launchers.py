"""Mistakes in the launcher: mends of this repository's history that are taken out, and others like them."""

from typing import List

from tests.simulation.faults import Fault
from tests.simulation.mutants.mutant import Edit, Mutant

_ATTACHED, _FOLLOWER, _TEARDOWN = "launch/run/attached.py", "launch/run/follower.py", "launch/teardown.py"
_OUTPUT, _EVENTS = "launch/output.py", "launch/agent/supervision/task_events.py"
_LEAD, _LIFECYCLE = "launch/agent/service/lead.py", "launch/run/lifecycle.py"
_RUNS = "launch/agent/state/runs.py"
ATTACHED, DETACHED, FAILOVER = 2000000, 2000002, 2500003  # seeds of such runs

_DAMAGED = (Fault(60.0, "stop"), Fault(70.0, "damaged checkpoint", "h0"), Fault(80.0, "resume"), Fault(120.0, "stop"))

# Of the commit in parentheses, by the beginning of its number.
LAUNCHERS: List[Mutant] = [
    Mutant(
        "go again",
        "a launcher sends go with its first connection alone (ecfba65)",
        (
            Edit(_ATTACHED, '        lead.send({"do": "go"})\n', "        self._go(lead)\n"),
            Edit(
                _ATTACHED,
                "    def go(self) -> RunStatus:\n",
                "    def _go(self, lead: Conversation) -> None:\n"
                '        if not vars(self).setdefault("_has_sent_go", False):\n'
                '            lead.send({"do": "go"})\n'
                "        self._has_sent_go = True\n\n"
                "    def go(self) -> RunStatus:\n",
            ),
        ),
        known=(ATTACHED, (Fault(2.05, "half-open", "h0"),)),
    ),
    Mutant(
        "signals again",
        "a launcher sends a signal's request once, though its connection may have lost it (ecfba65)",
        (Edit(_ATTACHED, "        self._relayed = 0\n        return super()", "        return super()"),),
        known=(ATTACHED, (Fault(20.0, "half-open", "h0"), Fault(20.5, "ctrl-c"))),
    ),
    Mutant(
        "pause",
        "a launcher that is paused by Ctrl-Z does not ask the lead to wait",
        (Edit(_ATTACHED, '        lead.send({"do": "pause"})\n', ""),),
        known=(ATTACHED, (Fault(15.0, "ctrl-z", seconds=60.0),)),
    ),
    Mutant(
        "watching renews",
        "a follower's beats renew the lease of the launcher (e69ddc6)",
        (Edit(_FOLLOWER, 'return {"do": "ping"}', 'return {"do": "beat", "heard": (1e9, 1e9)}'),),
        known=(ATTACHED, (Fault(10.0, "watch", seconds=110.0), Fault(15.0, "launcher"))),
    ),
    Mutant(
        "agents stay dead",
        "a launcher asks for the first start of an agent again, not for the next agent (c8351af)",
        (Edit(_ATTACHED, "replace(self._requests[host.name], again=True)", "self._requests[host.name]"),),
        known=(ATTACHED, (Fault(30.0, "agent", "h2"),)),
    ),
    Mutant(
        "members unasked",
        "down asks the lead alone",
        (Edit(_TEARDOWN, "if host not in lead}\n    with", "if False}\n    with"),),
        known=(DETACHED, (Fault(20.0, "stuck", "worker:1", 110.0), Fault(30.0, "stop"))),
    ),
    Mutant(
        "full stdout",
        "a launcher ends that cannot print (cba8f44)",
        (
            Edit(
                _OUTPUT,
                "        if not self.goes_on:\n            if first:",
                "        if True:\n            if first:",
            ),
        ),
        known=(ATTACHED, (Fault(20.0, "full stdout"),)),
    ),
    Mutant(
        "damaged code",
        "a verb runs its code without looking at each byte (c4fe8a8)",
        (Edit("launch/agent/bootstrap.py", 'else ["launcher"]  # each', "else []  # each"),),
        known=(DETACHED, (Fault(20.0, "damaged code", "h2"), Fault(40.0, "stop"))),
    ),
    Mutant(
        "lost rollback",
        "a run that resumes knows of no newer checkpoint that is damaged (02a8026)",
        (Edit("launch/agent/checkpoints/resume.py", "    _link_damaged(run, found.step, folder.checkpoint)\n", ""),),
        known=(DETACHED, _DAMAGED),
    ),
    Mutant(
        "uncounted rollback",
        "the steps of checkpoints that are passed over count as lost nowhere (02a8026)",
        (Edit(_EVENTS, "            incidents.stalls.pass_over(chief.name, newest, restored, now)\n", ""),),
        known=(DETACHED, _DAMAGED),
    ),
    Mutant(
        "unnamed rollback",
        "no incident names the checkpoints that are passed over (02a8026)",
        (Edit(_EVENTS, '            incidents.begin("checkpoint", at, host=chief.host, cause=passed)\n', ""),),
        known=(DETACHED, _DAMAGED),
    ),
    Mutant(
        "late beats",
        "a beat renews the lease whenever it arrives (2500e13)",
        (
            Edit(
                _LEAD, "self._launcher.confirm(heard, now(), since_boot())", "self._launcher.renew(now(), since_boot())"
            ),
        ),
        known=(FAILOVER, (Fault(40.0, "sleep", "h0", 30.0), Fault(110.0, "ctrl-c"))),
    ),
    Mutant(
        "lost host",
        "the host of a chief that was lost has a part in the successor where it answers again",
        (Edit(_LIFECYCLE, "{spec.chief.host, *ended.out_of_reach}", "set(ended.out_of_reach)"),),
        known=(2500009, (Fault(40.0, "line", "h0", 20.0), Fault(110.0, "ctrl-c"))),
    ),
    Mutant(
        "no successor",
        "a launcher that has lost the chief's host ends",
        (Edit(_LIFECYCLE, "if ended.lead_lost_at is None or interrupts.received:", "if True:"),),
        known=(FAILOVER, (Fault(40.0, "gone", "h0"), Fault(110.0, "ctrl-c"))),
    ),
    Mutant(
        "anew",
        "a successor begins without the copies of the checkpoints",
        (Edit(_LIFECYCLE, "RunStart(follows, resume=True,", "RunStart(follows, resume=False,"),),
        known=(FAILOVER, (Fault(60.0, "gone", "h0"), Fault(110.0, "ctrl-c"))),
    ),
    Mutant(
        "lease wait",
        "a successor does not wait for the end of the lost lead's lease",
        (Edit(_LIFECYCLE, "max(0.0, until - time.monotonic())", "0.0 * until"),),
        known=(FAILOVER, (Fault(40.0, "line", "h0", 50.0), Fault(53.0, "busy", "h0", 5.0), Fault(110.0, "ctrl-c"))),
    ),
    Mutant(
        "down unread",
        "a successor does not look whether a user has ended the run before it",
        (Edit(_RUNS, "if ended.has(ENDED_FOR_GOOD):", "if False:"),),
        known=(FAILOVER, (Fault(40.0, "gone", "h0"), Fault(58.0, "another down"))),
    ),
    Mutant(
        "unread stdout",
        "a launcher waits for whoever reads what it prints (cba8f44)",
        (Edit(_OUTPUT, "poll.poll(0 if self._failed else STALL_S * 1000)", "poll.poll()"),),
        known=(ATTACHED, (Fault(20.0, "unread stdout"),)),
    ),
]
