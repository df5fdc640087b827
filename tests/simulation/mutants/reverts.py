"""Mends of this repository's history, each taken out: the name, what the mend was, and its text without it."""

from typing import List

from tests.simulation.faults import Fault
from tests.simulation.mutants.mutant import Edit, Mutant

_SERVICE, _PROTOCOL, _DECIDES = "launch/agent/service/", "launch/agent/protocol/", "launch/agent/supervision/"
_MEMBER, _LINKS, _MEMBERS = _SERVICE + "member.py", _PROTOCOL + "links.py", _SERVICE + "member_links.py"
_AGENTS, _ELASTIC = _DECIDES + "agents.py", _DECIDES + "elastic.py"

PLAIN, ATTACHED, ELASTIC, DETACHED = 17459, 3225, 2498, 30181  # seeds of such runs
RETURNING, REJOINING = 19271, 1253  # of runs whose hosts a boot brings back

# Of the commit in parentheses, by the beginning of its number.
REVERTS: List[Mutant] = [
    Mutant(
        "sleep",
        "a member does not count its machine's suspension as silence (322f4cb)",
        (Edit(_MEMBER, "silent_s = since_boot() - self._received_at", "silent_s = now() - self._alone_at"),),
        known=(ELASTIC, (Fault(60.0, "sleep", "h2", 36.0),)),
    ),
    Mutant(
        "fence",
        "a member that the lead has lost keeps its tasks (ca928c4)",
        (Edit(_MEMBER, "self._joined and silent_s > self._lost_after_s and", "self._joined and False and"),),
        known=(ELASTIC, (Fault(60.0, "cut", "h2", 60.0),)),
    ),
    Mutant(
        "margin",
        "the lead takes a host for lost when the member's own time is over, not a margin later (ca928c4)",
        (Edit(_PROTOCOL + "silence.py", "MARGIN_SHARE = 0.3", "MARGIN_SHARE = 0.0"),),
        known=(ATTACHED, (Fault(60.0, "agent", "h1"),)),
    ),
    Mutant(
        "echo",
        "a member lives by what it has heard from the lead, not by what the lead has heard (ca928c4)",
        (Edit(_LINKS, "max(self.confirmed_at, message.echo)", "since_boot()"),),
    ),
    Mutant(
        "dial",
        "a member lives by the end of a handshake, not by when it spoke (ca928c4)",
        (Edit(_LINKS, 'Greeting("", lead), spoke_at)', 'Greeting("", lead), since_boot())'),),
    ),
    Mutant(
        "fenced dial",
        "a member that kills its tasks takes orders before these are gone (322f4cb)",
        (
            Edit(_MEMBER, "while self._fenced or self._tasks.is_hanging():", "while False:"),
            Edit(_MEMBER, "self._link.drop()  # new orders", "pass  # new orders"),
        ),
    ),
    Mutant(
        "incarnation",
        "the lead sends the next agent of a host the orders of the one before (ca928c4)",
        (
            Edit(
                _MEMBERS,
                "self._known[joined.host] = joined.incarnation\n            self._given.pop(joined.host, None)",
                "self._known[joined.host] = joined.incarnation",
            ),
        ),
        known=(DETACHED, (Fault(60.0, "agent", "h1"),)),
    ),
    Mutant(
        "agent ended",
        "the lead takes the next agent of a host for the one before (ca928c4)",
        (Edit(_AGENTS, "if another else None", "if another and False else None"),),
        known=(DETACHED, (Fault(60.0, "agent", "h1"),)),
    ),
    Mutant(
        "orders of the lost",
        "the lead keeps its orders to a host that it has lost (ca928c4)",
        (
            Edit(
                "launch/agent/service/lead.py",
                "                self._members.forget(event.host)\n",
                "                pass\n",
            ),
        ),
        known=(ELASTIC, (Fault(58.0, "crash", "worker:2"), Fault(58.5, "cut", "h2", 16.0))),
    ),
    Mutant(
        "spared",
        "a host is lost whose new link is just coming (ca928c4)",
        (Edit(_MEMBERS, "newly_lost(now(), self._arrived, awaits_boots)", "newly_lost(now(), (), awaits_boots)"),),
    ),
    Mutant(
        "admit",
        "a new link counts from its handshake, not from its Joined (ca928c4)",
        (
            Edit(
                _MEMBERS,
                "        self._arrived[link.peer.host] = link\n",
                "        self._arrived[link.peer.host] = self._links[link.peer.host] = link\n",
            ),
        ),
        known=(PLAIN, ()),
    ),
    Mutant(
        "obeyed",
        "a member obeys orders again that come again with a new link (179fdad)",
        (Edit(_MEMBER, "            self._obeyed.add(message)\n", ""),),
        known=(PLAIN, (Fault(60.0, "cut", "h1", 22.0),)),
    ),
    Mutant(
        "orders again",
        "a new link does not begin with the orders (179fdad)",
        (Edit(_MEMBERS, "for order in self._given.get(joined.host, []):", "for order in ():"),),
        known=(ELASTIC, (Fault(60.0, "crash", "worker:2"), Fault(60.9, "cut", "h2", 8.0))),
    ),
    Mutant(
        "news again",
        "a new link does not begin with the member's news (179fdad)",
        (Edit(_MEMBER, "for news in self._news.values():", "for news in ():"),),
        known=(ELASTIC, (Fault(60.0, "cut", "h2", 6.0), Fault(61.0, "crash", "worker:2"))),
    ),
    Mutant(
        "lead restarted",
        "a member keeps the tasks of a lead that is gone (ca928c4)",
        (
            Edit(_MEMBER, 'if self._serves in ("", link.peer.incarnation):', "if True:"),
            Edit(_MEMBERS, 'if link.peer.serves not in ("", self._incarnation):', "if False:"),
        ),
        known=(DETACHED, (Fault(60.0, "agent", "h0"),)),
    ),
    Mutant(
        "forgotten",
        "the next lead gets the events of tasks of the one before (ca928c4)",
        (
            Edit(
                _MEMBER,
                'if getattr(event, "task", None) in self._forgotten:\n',
                'if getattr(event, "task", None) in self._forgotten:\n'
                "            self._forgotten = set()\n"
                "        if False:\n",
            ),
            Edit(
                _MEMBER, "self._news, self._obeyed, self._serves = {}, set(), ", "self._obeyed, self._serves = set(), "
            ),
        ),
    ),
    Mutant(
        "old events",
        "the lead counts events of earlier attempts, and twice those that come again (179fdad)",
        (
            Edit(
                _DECIDES + "task_records.py",
                "return task if event.attempt == task.attempt and task.process else None",
                "return task",
            ),
        ),
        known=(PLAIN, (Fault(60.0, "crash", "worker:1"), Fault(60.1, "reset", "h1"))),
    ),
    Mutant(
        "put twice",
        "a task whose next attempt is set anew begins at both times (965a3f3)",
        (
            Edit(
                _DECIDES + "restart_policy.py",
                'if task.state == "restarting" and task.restart_at == at:',
                'if task.state in ("restarting", "starting"):',
            ),
        ),
        known=(DETACHED, (Fault(60.0, "crash", "worker:1"), Fault(60.5, "restart", "worker:1"))),
    ),
    Mutant(
        "ps first",
        "a run that ends has its ps end with its workers (179fdad)",
        (
            Edit(
                _DECIDES + "ending.py",
                'return role == group if group == EVALUATOR else (role == "ps") == (group == PS)',
                "return True",
            ),
        ),
        known=(PLAIN, (Fault(60.0, "stop"),)),
    ),
    Mutant(
        "save",
        "a run that is stopped does not save first (22afd3d)",
        (
            Edit(
                _DECIDES + "run_state.py",
                "orders = self.saving.ask(now, HOLD) if self.trains else []",
                "orders: List[Order] = []",
            ),
        ),
        known=(ELASTIC, (Fault(61.0, "stop"),)),
    ),
    Mutant(
        "save before taking back",
        "an elastic run takes a host back without a save (f305283)",
        (Edit(_ELASTIC, "if self._changes_cluster(ready) and not self._saves else []", "if False else []"),),
        known=(ELASTIC, (Fault(60.0, "cut", "h2", 22.0),)),
    ),
    Mutant(
        "first word",
        "a run waits for ever for its launcher's first word (1531fb5)",
        (Edit(_SERVICE + "lead.py", "if self._is_attended else FIRST_WORD_S)", "if self._is_attended else math.inf)"),),
        known=(ATTACHED, (Fault(0.5, "launcher"),)),
    ),
    Mutant(
        "lease",
        "a run goes on without its launcher (179fdad)",
        (
            Edit(
                _SERVICE + "lead.py",
                "        if self._lease_s is not None and silent_s",
                "        if False and self._lease_s is not None and silent_s",
            ),
        ),
        known=(ATTACHED, (Fault(60.0, "launcher"),)),
    ),
    Mutant(
        "deserted",
        "a member stays where nobody leads any more (7c15516)",
        (
            Edit(
                _MEMBER,
                "self._deserted_at = (self._deserted_at or now()) if refused else None",
                "self._deserted_at = None",
            ),
        ),
        known=(ELASTIC, (Fault(60.0, "agent", "h0"),)),
    ),
    Mutant(
        "too many",
        "agents of a host may end again and again (ca928c4)",
        (Edit(_AGENTS, "        if too_many:\n", "        if False and too_many:\n"),),
    ),
    Mutant(
        "takeover",
        "the next lead begins with the attempts of the one before (c8351af)",
        (Edit(_SERVICE + "recovery.py", "1 + max(noted", "max(noted"),),
        known=(DETACHED, (Fault(60.0, "agent", "h0"),)),
    ),
    Mutant(
        "whole formation",
        "the next formation begins while processes of the one before live (1aebbd8)",
        (
            Edit(
                _ELASTIC,
                "if self._run.state.phase is Phase.REFORMING and not self._roster.process_count:",
                "if self._run.state.phase is Phase.REFORMING:",
            ),
        ),
        known=(ELASTIC, (Fault(60.0, "cut", "h2", 60.0),)),
    ),
    Mutant(
        "reconnect",
        "tasks are not restarted that try a host again which was long away (ca928c4)",
        (Edit(_AGENTS, "return self._reconnect(event, replaced, now) if", "return [] if"),),
        known=(RETURNING, (Fault(60.0, "power", "h1", 5.0),)),
    ),
    Mutant(
        "out while it trains",
        "a host that was lost and returns is restarted like one with another agent (1aebbd8)",
        (
            Edit(
                _AGENTS,
                "        if self._formations.admit(event.host, now):\n            return []\n",
                "        self._formations.admit(event.host, now)\n",
            ),
        ),
        known=(REJOINING, (Fault(60.0, "power", "h1", 5.0),)),
    ),
]
