"""A host that launchers reach: its sshd, the programs that it runs for them, and its agent as their verbs see it."""

import json
from typing import Any, Callable, Dict, List, Optional

from launch.agent import leftovers
from launch.agent.leftovers import GONE_S
from launch.agent.linux.processes import Process as Row
from launch.agent.protocol.local_socket import Clients
from launch.agent.service import recovery
from launch.agent.service.daemon import leave_nothing
from launch.agent.service.lead import Lead
from launch.agent.service.located import folder_of
from launch.agent.state import plan_file, process_records, runs
from launch.agent.state.locks import NameTaken
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest
from tests.simulation.launcher.baton import Spot
from tests.simulation.launcher.hosts import SSHD
from tests.simulation.launcher.programs import Program, me
from tests.simulation.launcher.sessions import accept
from tests.simulation.lives import Life
from tests.simulation.machines import NOTICED_S, Machine
from tests.simulation.process_table import ProcessTable
from tests.simulation.replaced import Folder

Send = Callable[[Dict[str, Any]], None]


class PlacedFolder(Folder):
    """A run's folder whose paths can be asked for files."""

    def __init__(self, run: str, machine: Any):
        super().__init__(run, machine.host, machine.disk)
        RunFolder.__init__(self, machine.world.operators.workdir(machine.host), run, machine.host)


class LaunchedLife(Life):
    """A life that serves local callers, as ``launch.agent.service.daemon`` has it; its first answer is ``send``'s."""

    def __init__(self, machine: Any, request: RunRequest, send: Send):
        self._send = send
        super().__init__(machine, request)
        self._answer, self.agent.answer = self.agent.answer, self._answer_looked_at

    def _answer_looked_at(self, request: Dict[str, Any]) -> Any:
        """Answer; after a kill, or where members are asked one by one, no order of ends is promised."""
        verb, world = request.get("do"), self.machine.world
        if verb == "kill" or (verb == "stop" and not isinstance(self.agent, Lead)):
            world.is_killing = True
        return self._answer(request)

    async def _live(self) -> None:
        clients = Clients(self.machine.folder.own / "agent.sock", self.agent.answer)
        try:
            await self.agent.open()
            await clients.open()
        except OSError as error:
            self._send({"error": f"cannot listen: {error}"})
            self.loop.is_dead = True
            self.machine.refused()
            return
        self._send({"ready": True, "pid": self.machine.table.agent, "ended": [], "notes": []})
        await self.agent.run()
        await leave_nothing(self.tasks, [])
        await clients.close()
        self.is_over = self.loop.is_dead = True
        self.machine.left(self, self.agent.is_away)


class LaunchedTable(ProcessTable):
    """The processes of a host, the agent and its keeper among them."""

    machine: Any

    def row(self, pid: int) -> Optional[Row]:
        served = self.machine.serving.get(pid)
        return super().row(pid) if served is None else served

    def rows(self) -> List[Row]:
        return [*self.machine.serving.values(), *super().rows()]

    def kill(self, pid: int, number: int) -> None:
        if pid in self.machine.serving:
            self.after(0.0, lambda: self.machine.kill(pid))
        else:
            super().kill(pid, number)


class LaunchedMachine(Machine):
    """A host whose agent a launcher starts."""

    def __init__(self, world: Any, request: RunRequest, rate: float):
        self.programs: List[Program] = []
        self._is_made = False
        super().__init__(world, request, rate)
        self._is_made = True
        self.disk.unlink(str(self.folder.own / "plan.json"))
        self.folder = PlacedFolder(request.run, self)
        table = LaunchedTable(world.agenda.after, self._ended)
        self.table, table.machine = table, self
        self._keeper, self._cleans_until = 0, 0.0
        self._began: Dict[int, int] = {}  # by pid of agent and keeper
        self._began_at, self._has_unit, self._is_first = 0.0, False, True
        self._open_sshd()

    def _open_sshd(self) -> None:
        self.sshd = Spot(Sshd(self.world), self, self.clock, self.host, self.world.network)
        self.world.network.listen(self.sshd, SSHD, accept(self))

    # -- the agent

    @property
    def serving(self) -> Dict[int, Row]:
        """The lines of the process table for keeper and agent."""
        found: Dict[int, Row] = {}
        if self._keeper and (self.life is not None or (self.world.agenda.now < self._cleans_until and self.living())):
            found[self._keeper] = self._row(self._keeper)
        if self.has_process:
            found[self.table.agent] = self._row(self.table.agent)
        return found

    def _row(self, pid: int) -> Row:
        parent = 1 if pid == self._keeper else self._keeper
        return Row(pid, parent, self._keeper, self._keeper, "S", self._began[pid])

    @property
    def has_process(self) -> bool:
        """Whether the agent's process is there, asleep and stopped ones too."""
        return self.life is not None and not self.life.loop.is_dead

    def serve(self, request: RunRequest, says: int) -> int:
        """Begin an agent with its keeper, as ``launch.agent.service`` does; ``says`` is the pipe for its answer."""
        pipe = me().files[says]

        def send(answer: Dict[str, Any]) -> None:
            pipe.write(json.dumps(answer).encode() + b"\n")
            pipe.close()

        self._request, self._has_unit, self._ends = request, request.returns, 0
        try:
            if self.life is not None:
                raise NameTaken("its agent is up")
            ended = leftovers.end_earlier_runs(folder_of(request), request.name, request.file)
        except NameTaken as error:
            send({"error": str(error)})
            return 0
        self._keeper = self.world.new_pid()
        self._note(self._keeper)
        self._begin_life(request, lambda answer: send({**answer, "ended": ended}))
        return self._keeper

    def _begin_life(self, request: RunRequest, send: Optional[Send] = None) -> None:
        """Begin an agent; one that cannot write ends, as one that cannot listen does."""
        if not self._is_made:
            return
        self.table.agent, self.table.keeper = self.world.new_pid(), self._keeper
        self._note(self.table.agent)
        self._began_at, self._is_first = self.world.agenda.now, send is not None
        place = Spot(Sshd(self.world), self, self.clock, self.host, self.world.network)
        answer = send or (lambda values: None)
        try:
            with place.within():
                self._record(request)
        except OSError as error:
            answer({"error": f"cannot write in {self.folder.own}: {error.strerror}"})
            self.refused()
            return
        self.life = LaunchedLife(self, request, answer)

    def _note(self, pid: int) -> None:
        self._began[pid] = int(100 * self.clock.boottime())

    def _record(self, request: RunRequest) -> None:
        """Do what ``launch.agent.service.preparation`` writes."""
        self._forget_lock()
        if request.generation is not None:
            runs.note_generation(self.folder, request.generation, durable=request.returns)
        if not request.again or not plan_file.exists(self.folder):
            plan_file.write(self.folder, request)
        rows = self.serving
        agent = Row(self.table.agent, self._keeper, self._keeper, self._keeper, "S", self._began[self.table.agent])
        keeper = rows.get(self._keeper) or Row(
            self._keeper, 1, self._keeper, self._keeper, "S", self._began[self._keeper]
        )
        process_records.write_agent(self.folder, agent, keeper)
        self.disk.write(self.lock, json.dumps({"run": self.folder.run, "pid": self.table.agent}))

    @property
    def lock(self) -> str:
        """The path of the run's name, which the agent holds."""
        return f"{self.folder.workdir}/locks/{self._request.name}@{self.host}.lock"

    def _forget_lock(self) -> None:
        for path in (self.lock, str(self.folder.own / "agent.sock")):
            if self.disk.lexists(path):
                self.disk.unlink(path)

    def holder(self, path: str) -> Optional[str]:
        """Return what the holder of a lock has written; None where nobody holds it."""
        return self.disk.read(path) if self.has_process and self.disk.lexists(path) else None

    @property
    def agent_began(self) -> float:
        """When the agent's process began, in the world's time."""
        return self._began_at

    @property
    def has_unit(self) -> bool:
        """Whether a boot starts the agent."""
        return self._has_unit

    def remove_unit(self) -> None:
        """No boot starts the agent."""
        self._has_unit = False

    def refused(self) -> None:
        """An agent could not begin; the keeper of a first one ends, too."""
        self.world.note(self.host, "the agent cannot begin")
        self.table.agent_ended()
        if self._is_first:
            self.life, self._keeper = None, 0
        else:
            self._begin_another(GONE_S)

    def left(self, life: Life, is_away: bool) -> None:
        self._forget_lock()
        super().left(life, is_away)

    def kill(self, pid: int) -> None:
        """A verb has killed the agent, or its keeper; an agent without a keeper ends, and nobody begins the next."""
        self.world.is_killing = True
        if pid == self._keeper:
            self._keeper = 0
            life, self.life = self.life, None
            if life is not None and not life.loop.is_dead:
                self.world.note(self.host, "the keeper is killed")
                life.loop.is_dead = True
                self.world.network.died(life.loop)
                self.table.agent_ended()
        elif pid == self.table.agent:
            self.kill_agent()

    def _keep(self, soon_s: float, patience_s: float, pause_s: Optional[float]) -> None:
        if self.life is None:
            self._cleans_until = max(
                self._cleans_until, self.world.agenda.now + NOTICED_S + min(patience_s, 2 * GONE_S)
            )
        super()._keep(soon_s, patience_s, pause_s)

    # -- the machine

    def lose_power(self) -> None:
        if self.has_power:
            super().lose_power()
            self._keeper = 0
            self.sshd.is_dead = True
            self.world.network.died(self.sshd, has_power=False)
            programs, self.programs = self.programs, []
            for each in programs:
                each.end(-9, has_power=False)

    def boot(self) -> None:
        if not self.has_power:
            super().boot()
            self._open_sshd()

    def _begin_next(self, booted: bool = False) -> None:
        if self._keeper == 0 and not booted:
            return
        if not booted and not recovery.goes_on(self.folder, self._request):  # as ``beginning.serve`` asks
            self.life, self._has_unit = None, False
            return
        if booted:
            self._keeper = self.world.new_pid()
            self._note(self._keeper)
        super()._begin_next(booted)

    def wake(self) -> None:
        was_asleep = self.clock.is_asleep
        super().wake()
        if was_asleep:
            self.sshd.woke()
            for each in self.programs:
                each.woke()


class Sshd:
    """Whom a machine's own connections belong to."""

    def __init__(self, world: Any):
        self.agenda, self.fail = world.agenda, world.fail
