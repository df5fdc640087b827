"""A host that launchers reach: its sshd, the programs that it runs for them, and its agent as their verbs see it."""

import json
from typing import Any, Callable, Dict, List, Optional

from launch.agent import leftovers
from launch.agent.checkpoints import resume
from launch.agent.linux.processes import Process as Row
from launch.agent.service.agent import Clients
from launch.agent.service.keeping import FAILED
from launch.agent.service.lead import Lead
from launch.agent.state import plan_file, process_records, runs
from launch.agent.state.locks import NameTaken
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest
from tests.simulation.keepers import Keeper
from tests.simulation.launcher import code
from tests.simulation.launcher.baton import Spot
from tests.simulation.launcher.hosts import SSHD
from tests.simulation.launcher.programs import Program, me
from tests.simulation.launcher.sessions import accept
from tests.simulation.lives import Life
from tests.simulation.loops import Gone
from tests.simulation.machines import Machine
from tests.simulation.process_table import ProcessTable

Send = Callable[[Dict[str, Any]], None]


class LaunchedLife(Life):
    """A life that serves local callers, as ``launch.agent.service.daemon`` has it; its first answer is ``send``'s."""

    def __init__(self, machine: Any, request: RunRequest, keeper: Keeper, send: Send):
        self._send = send
        self._clients: Any = None
        super().__init__(machine, request, keeper.write)
        self._answer, self.agent.answer = self.agent.answer, self._answer_looked_at

    def _answer_looked_at(self, request: Dict[str, Any]) -> Any:
        """Answer; after a kill, or where members are asked one by one, no order of ends is promised."""
        verb, world = request.get("do"), self.machine.world
        if verb == "kill" or (verb == "stop" and not isinstance(self.agent, Lead)):
            world.is_killing = True
        return self._answer(request)

    async def _opened(self) -> bool:
        self._clients = Clients(self.machine.folder.own / "agent.sock", self.agent.answer)
        try:
            await self.agent.open()
            await self._clients.open()
        except OSError as error:
            self._send({"error": f"cannot listen: {error}"})
            self.machine.end_agent("the agent cannot begin", FAILED)
            return False
        self._send({"ready": True, "pid": self.machine.table.agent, "notes": []})
        return True

    async def _close(self) -> None:
        await self._clients.close()


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
    """A host whose first agent a launcher starts."""

    def begin_run(self) -> None:
        """Nothing runs here yet but an sshd."""
        table = LaunchedTable(self.world.agenda.after, self._ended)
        self.table, table.machine = table, self
        self.programs: List[Program] = []
        self.agent_began = 0.0  # when the agent's process began, in the world's time
        self._starts: Dict[int, int] = {}  # of agents and keepers by pid, by the host's clock
        self._send: Optional[Send] = None  # which answers the verb that starts an agent
        code.install(self.disk, self.folder.workdir)
        self._open_sshd()

    def _open_sshd(self) -> None:
        self.sshd = self._spot()
        self.world.network.listen(self.sshd, SSHD, accept(self))

    def _spot(self) -> Spot:
        return Spot(Sshd(self.world), self, self.clock, self.host, self.world.network)

    # -- the agent

    @property
    def serving(self) -> Dict[int, Row]:
        """The lines of the process table for keeper and agent."""
        keeper = self.keepers.newest
        pids = [] if keeper is None else [keeper.pid]
        return {pid: self._row(pid) for pid in [*pids, *([self.table.agent] if self.has_process else [])]}

    def _row(self, pid: int) -> Row:
        keeper = self.table.keeper
        return Row(pid, 1 if pid == keeper else keeper, keeper, keeper, "S", self._starts[pid])

    @property
    def has_process(self) -> bool:
        """Whether the agent's process is there, asleep and stopped ones too."""
        return self.life is not None and not self.life.loop.is_dead

    def new_keeper(self) -> int:
        """Return the pid of a keeper that begins, which adopts what loses its parent."""
        self.table.keeper = self._new_pid()
        return self.table.keeper

    def _new_pid(self) -> int:
        pid = self.world.new_pid()
        self._starts[pid] = int(100 * self.clock.boottime())
        return int(pid)

    def serve(self, request: RunRequest, says: int) -> int:
        """Begin an agent with its keeper, as ``launch.agent.service`` does; ``says`` is the pipe for its answer."""
        pipe = me().files[says]

        def send(answer: Dict[str, Any]) -> None:
            pipe.write(json.dumps(answer).encode() + b"\n")
            pipe.close()

        folder = RunFolder(self.folder.workdir, request.run, self.host)
        try:
            if not request.again:
                runs.refuse_ended(folder, request.follows)
            if self.life is not None or self.keepers.newest is not None:
                raise NameTaken("its agent is up")
            ended = leftovers.end_earlier_runs(folder, request.name, request.file)
        except NameTaken as error:
            send({"error": str(error)})
            return 0
        except runs.EndedForGood as error:
            send({"error": str(error), "kind": "ended"})
            return 0
        self.world.operators.resumes.begins(request.run)
        self.request, self.folder = request, folder
        self._send = lambda answer: send({**answer, "ended": ended})
        self.keepers.begin(request)
        if self.life is None:
            pipe.close()
        return self.table.keeper

    def _life_of(self, request: RunRequest, keeper: Keeper) -> Optional[Life]:
        """Begin an agent; one that cannot write ends, as one that cannot listen does."""
        send, self._send = self._send or (lambda answer: None), None
        self._starts[self.table.agent] = int(100 * self.clock.boottime())
        self.agent_began = self.world.agenda.now
        try:
            with self._spot().within():
                self._record(request)
            return LaunchedLife(self, request, keeper, send)
        except OSError as error:
            send({"error": f"cannot write in {self.folder.own}: {error.strerror}"})
        except runs.EndedForGood as error:
            send({"error": str(error), "kind": "ended"})
        except ValueError as error:  # there is nothing to resume from
            send({"error": str(error)})
        except Gone:
            pass
        self.world.note(self.host, "the agent cannot begin")
        self.table.agent_ended()
        self.has_unit = self.has_unit and request.again  # a first one removes it
        return None

    def _record(self, request: RunRequest) -> None:
        """Do what ``launch.agent.service.preparation`` writes."""
        self._forget_lock()
        if request.generation is not None:
            runs.note_generation(self.folder, request.generation, durable=request.returns)
        if not request.again or not self.folder.has(plan_file.PLAN):
            plan_file.write(self.folder, request)
        if request.run_plan is not None and request.resume and not request.again:
            resume.prepare(self.folder, request.name, None, True, request.resume_from)
        process_records.write_agent(self.folder, self._row(self.table.agent), self._row(self.table.keeper))
        if not request.again:
            runs.refuse_ended(self.folder, request.follows)
        self.disk.write(self.lock, json.dumps({"run": self.folder.run, "pid": self.table.agent}))

    @property
    def lock(self) -> str:
        """The path of the run's name, which the agent holds."""
        return f"{self.folder.workdir}/locks/{self.request.name}@{self.host}.lock"

    def _forget_lock(self) -> None:
        self.disk.forget(self.lock)
        self.disk.forget(str(self.folder.own / "agent.sock"))

    def holder(self, path: str) -> Optional[str]:
        """Return what the holder of a lock has written; None where nobody holds it."""
        return self.disk.read(path).decode() if self.has_process and self.disk.lexists(path) else None

    def remove_unit(self) -> None:
        """No boot starts the agent."""
        self.has_unit = False

    def left(self, life: Life, is_away: bool) -> None:
        self._forget_lock()
        super().left(life, is_away)

    def kill(self, pid: int) -> None:
        """A verb has killed the agent, or its keeper."""
        self.world.is_killing = True
        if self.keepers.newest is not None and pid == self.keepers.newest.pid:
            self.keepers.kill()
        elif pid == self.table.agent:
            self.kill_agent()

    # -- the machine

    def lose_power(self) -> None:
        if self.has_power:
            super().lose_power()
            self.sshd.is_dead = True
            self.world.network.died(self.sshd, has_power=False)
            programs, self.programs = self.programs, []
            for each in programs:
                each.end(-9, has_power=False)

    def boot(self) -> None:
        if not self.has_power:
            super().boot()
            self._open_sshd()

    def wake(self) -> None:
        was_asleep = self.clock.is_asleep
        super().wake()
        if was_asleep:
            self.sshd.let_happen()
            for each in self.programs:
                each.woke()


class Sshd:
    """Whom a machine's own connections belong to."""

    def __init__(self, world: Any):
        self.agenda, self.fail = world.agenda, world.fail
