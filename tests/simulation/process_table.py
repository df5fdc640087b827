"""The process table of a simulated host: who is whose child, what an end leaves, and what a parent reaps."""

from typing import Any, Callable, Dict, List, Optional, Tuple

from launch.agent.linux.processes import Process as Row
from tests.simulation.processes import Process


class ProcessTable:
    """The processes of one host by pid, those that nobody has reaped among them.

    Agent and keeper are parents here, and no lines of the table: who ends them, the machine knows. Either adopts what
    loses its parent, as the product asks the kernel for.

    Args:
      after: lets something happen some seconds later.
      ended: is called when a process has ended; its argument is whether it is the agent's child.
    """

    def __init__(
        self,
        after: Callable[[float, Callable[[], None]], None],
        ended: Callable[[Process, bool], None] = lambda process, is_child: None,
    ):
        self.after, self._ended = after, ended
        self.keeper, self.agent = 1, 0
        self.is_asleep = False
        self.processes: Dict[int, Process] = {}

    # -- what the machine does

    def add(self, process: Process) -> Process:
        """A process begins."""
        self.processes[process.pid] = process
        return process

    @property
    def living(self) -> List[Process]:
        """Processes that have not ended."""
        return [each for each in self.processes.values() if each.code is None]

    def ended(self, process: Process) -> None:
        """A process has ended: others adopt its children; it is a zombie until its parent, an agent, reaps it."""
        for each in list(self.processes.values()):
            if each.parent == process.pid:
                self._adopt(each)
        is_child = process.parent == self.agent
        if not is_child:
            del self.processes[process.pid]
        self._ended(process, is_child)

    def _adopt(self, orphan: Process) -> None:
        orphan.parent = self.agent or self.keeper
        if orphan.code is not None and not self.agent:
            del self.processes[orphan.pid]

    def agent_ended(self) -> None:
        """The agent has ended: the kernel kills the leaders, which it had started; the keeper adopts all."""
        agent, self.agent = self.agent, 0
        children = [each for each in self.processes.values() if each.parent == agent]
        for each in children:
            self._adopt(each)
            if each.pid == each.leader and each.code is None:
                each.take(9)

    def lose_power(self) -> None:
        """Everything ends at once."""
        self.agent = 0
        for each in self.living:
            each.code = -9
        self.processes.clear()

    def sleep(self) -> None:
        """Nothing ends from now on."""
        self.is_asleep = True

    def wake(self) -> None:
        """What was to end meanwhile does."""
        self.is_asleep = False
        for each in self.living:
            each.settle()

    # -- what the kernel answers an agent

    def row(self, pid: int) -> Optional[Row]:
        """The line of a process."""
        process = self.processes.get(pid)
        return None if process is None else process.row

    def rows(self) -> List[Row]:
        """Every line."""
        return [each.row for each in self.processes.values()]

    def environment(self, pid: int) -> Dict[str, str]:
        """The variables of a process that has not ended."""
        process = self.processes.get(pid)
        return {} if process is None or process.code is not None else process.env

    def kill(self, pid: int, number: int) -> None:
        """Signal a process."""
        process = self.processes.get(pid)
        if process is None:
            raise ProcessLookupError(pid)
        if process.code is None:
            process.take(number)

    def waitid(self, kind: int, pid: int, options: int) -> Any:
        """Whether a child of the agent has ended; it stays a zombie."""
        return None if self._child(pid).code is None else object()

    def waitpid(self, pid: int, options: int = 0) -> Tuple[int, int]:
        """Reap a child of the agent, if it has ended."""
        child = self._child(pid)
        if child.code is None:
            return 0, 0
        del self.processes[pid]
        return pid, -child.code if child.code < 0 else child.code << 8

    def _child(self, pid: int) -> Process:
        process = self.processes.get(pid)
        if process is None or process.parent != self.agent:
            raise ChildProcessError(pid)
        return process
