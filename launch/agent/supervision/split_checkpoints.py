"""Rule: warn of a program's checkpoint that no restart can read, because each host saves into its own folder.

Each host reports the checkpoints that its programs save (``launch.agent.tasks.saved_checkpoints``). The rule only adds
a warning to the status, and gives no orders.

    with ps       The chief's host has the list of a checkpoint, and not its values: a ps has written them on its own
                  host. The rule warns while training still goes on, since otherwise only a restart shows that
                  nothing was saved.
    without ps    Some hosts have checkpoints, and others have none. This may be right, where one rank restores and
                  sends the values to the others. So the rule warns only when a restarted worker fails.
"""

from typing import Dict, List, Mapping, Set

from cluster.task import TRAINERS
from launch.agent.protocol.messages import Event, Exited, Measured, Order
from launch.agent.supervision.run_state import SupervisedRun, SupervisionRule

LOOKS = 2  # of a host, one after the other, that find no values; one is enough once the task has ended
MOST_HOSTS = 3  # that a sentence names
MEND = "name a folder that all hosts share"


class SplitCheckpoints(SupervisionRule):
    """The rule that compares the checkpoints that the hosts of workers have of one run's programs."""

    def __init__(self, run: SupervisedRun):
        super().__init__(run)
        tasks = [task.plan for task in run.tasks.values()]
        self._ps_hosts = list(dict.fromkeys(task.host for task in tasks if task.role == "ps"))
        self._lists: Dict[str, Mapping[str, str]] = {}  # {host: {path: the missing checkpoint, or ""}}, the newest
        self._missed: Dict[str, int] = {}  # {host: looks that found no values}
        self._named: Set[bool] = set()  # with values missing, or on some hosts alone

    def handle(self, event: Event, now: float) -> List[Order]:
        """Record the report of a host; warn of a checkpoint that no restart can read; return no orders."""
        if self._run.plan.judge != "exit" or self._run.state.is_closing:
            return []
        if isinstance(event, Measured):
            self._take(event)
        elif isinstance(event, Exited) and event.exit_code and event.attempt:
            task = self._run.roster.find(event)
            if task is not None and task.plan.role in TRAINERS and not task.recalled:
                self._name_lone()
        return []

    def _take(self, event: Measured) -> None:
        """Take the report of one host, about all its tasks or about one that has ended."""
        uses = {name: use for name, use in event.tasks.items() if self._run.tasks[name].plan.role in TRAINERS}
        if not uses:
            return
        host = self._run.tasks[next(iter(uses))].plan.host
        lists = {path: name for use in uses.values() for path, name in use.get("saved", {}).items()}
        missing = [(path, name) for path, name in lists.items() if name]
        is_last = any("ended" in use for use in uses.values())  # of one task: others of its host may have further lists
        self._lists[host] = lists or (self._lists.get(host, {}) if is_last else {})
        self._missed[host] = self._missed.get(host, 0) + 1 if missing else 0
        if missing and self._ps_hosts and (is_last or self._missed[host] >= LOOKS):
            self._name_split(host, *missing[0])

    def _name_split(self, host: str, path: str, name: str) -> None:
        mend = f"{MEND}, or run every ps on {host}" if self._ps_hosts != [host] else "name an absolute folder"
        self._warn(
            True,
            f"{host}: {path} names {name}, but its values are not there: each ps writes into its own folder, "
            f"and no restart can read them; {mend}",
        )

    def _name_lone(self) -> None:
        having = [host for host, lists in self._lists.items() if lists]
        without = [host for host, lists in self._lists.items() if not lists]
        if having and without and not self._ps_hosts:
            path = next(iter(self._lists[having[0]]))
            self._warn(
                False,
                f"{path} is on {_named(having)} alone: workers that restarted on {_named(without)} found no checkpoint"
                f"; {MEND}",
            )

    def _warn(self, is_split: bool, text: str) -> None:
        if is_split not in self._named:
            self._named.add(is_split)
            self._run.warnings.append(text)


def _named(hosts: List[str]) -> str:
    return ", ".join(hosts[:MOST_HOSTS]) + (", \u2026" if len(hosts) > MOST_HOSTS else "")
