"""A simulated host: it boots, sleeps and loses power; on it an agent, its keeper, and its processes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, List, Mapping, Optional

from cluster.protocol.standby import STANDBY
from launch.agent.leftovers import GONE_S
from launch.agent.service import recovery
from launch.agent.service.keeper import CHANCE_S, granted_s, patience_s
from launch.agent.state.run_folder import RunFolder
from launch.agent.supervision.agents import MOST
from launch.agent.wire.run_request import RunRequest
from tests.simulation.disks import FROM, Disk
from tests.simulation.lives import Life
from tests.simulation.loops import Clock
from tests.simulation.process_table import ProcessTable
from tests.simulation.processes import Process
from tests.simulation.programs import Program
from tests.simulation.training import START_S

NOTICED_S = 0.3  # by the keeper, an end of its agent
PAUSE_S = 0.5
UP_S = 20.0  # after a boot, until its unit starts the agent
OFF_S = 2.0  # after the agent has gone away, until the machine is off


class Machine:
    """A host with its clock, files and processes.

    Args:
      world: has agenda, network, training, and takes notes.
      request: of its agent.
    """

    def __init__(self, world: Any, request: RunRequest, rate: float):
        self.world, self.host, self._request = world, request.host, request
        self.clock = Clock(world.agenda, rate)
        self.disk = Disk(self.clock.wall)
        self.folder = RunFolder(self.disk.path("/simulated") / request.host, request.run, request.host)
        self.disk.write(self.folder.own / "plan.json", "{}", durable=True)
        self.table = ProcessTable(world.agenda.after, self._ended)
        self.has_power = True
        self._ends = self._boots = 0
        self._has_unit = request.returns  # which starts the agent after a boot
        self.led_since: Optional[float] = None  # since when the newest agent has been there, but for the first
        self.life: Optional[Life] = None
        world.machines[self.host] = self
        self._begin_life(request)

    # -- processes

    def begin(self, task: str, attempt: int, formation: str) -> Process:
        """Start a process that nobody has ordered."""
        folder = Path("/elsewhere") / task.replace(":", ".")
        config = json.dumps({"cluster": json.loads(formation)})
        return self.spawn({"LAUNCH_TASK_DIR": str(folder), "LAUNCH_ATTEMPT": str(attempt), "TF_CONFIG": config})

    def spawn(self, env: Mapping[str, str]) -> Process:
        """Start the process of a task, the leader of a session; with ``STANDBY`` it waits for its turn."""
        folder, pid = Path(env["LAUNCH_TASK_DIR"]), self.world.new_pid()
        process = self.table.add(
            Process(
                self.table, pid, self.table.agent, pid, pid, int(100 * self.clock.boottime()), dict(env),
                folder.name.replace(".", ":"), int(env["LAUNCH_ATTEMPT"]), self.host, self.world.agenda.now,
                json.dumps(json.loads(env["TF_CONFIG"])["cluster"]), waits=STANDBY in env,
            )
        )  # fmt: skip
        process.program = Program(process, folder, self.clock.monotonic, self.disk)
        if process.waits:
            self.world.note(self.host, f"prepares {process.task} attempt {process.attempt}")
            self.world.agenda.after(START_S, process.program.be_ready)
        else:
            self.give_turn(process)
        return process

    def give_turn(self, process: Process) -> None:
        """A process begins to train."""
        process.waits, process.lead = False, self.life.leads if self.life is not None else ""
        self.world.training.processes.append(process)
        self.world.promises.starts(process)
        self.world.note(self.host, f"starts {process.task} attempt {process.attempt}")

    def leave_child(self, process: Process, session: int) -> None:
        """A process starts another, in its own session or in one of its own (0); it ignores TERM."""
        pid = self.world.new_pid()
        self.table.add(
            Process(
                self.table, pid, process.pid, process.leader, session or pid, int(100 * self.clock.boottime()),
                process.env, process.task, process.attempt, self.host, self.world.agenda.now, process.formation,
                process.lead, ignores_term=True,
            )
        )  # fmt: skip

    def _ended(self, process: Process, is_child: bool) -> None:
        what = process.task if process.pid == process.leader else f"a child of {process.task}"
        self.world.note(self.host, f"{what} attempt {process.attempt} ends: {process.code}")
        if is_child and self.life is not None:
            self.life.wake()

    def stand_still(self, seconds: float) -> None:
        """The agent waits, and does nothing else."""
        if self.has_agent and self.life is not None:
            self.life.loop.stand_still(seconds)
            self._watch_pulse(self.life)

    def living(self) -> List[Process]:
        """Processes that have not ended."""
        return self.table.living

    # -- the agent

    @property
    def has_agent(self) -> bool:
        """Return whether an agent is there to do anything."""
        life = self.life
        return life is not None and not life.loop.is_dead and self.has_power and not self.clock.is_asleep

    @property
    def is_stopped(self) -> bool:
        """Return whether the agent's process is stopped."""
        return self.life is not None and self.life.loop.is_stopped

    def _begin_life(self, request: RunRequest) -> None:
        self.table.agent = self.world.new_pid()
        self.life = Life(self, request)

    def stop_agent(self) -> None:
        """The agent's process is stopped; its keeper kills one without a pulse."""
        if self.has_agent and self.life is not None:
            self.world.note(self.host, "the agent is stopped")
            self.life.loop.stop()
            self._watch_pulse(self.life)

    def _watch_pulse(self, life: Life) -> None:
        """The keeper kills an agent that does nothing from now on, for as long as its last beat has granted."""
        began = self.world.agenda.now
        with life.loop.within():
            patience = granted_s(patience_s(self._request.lost_after_s), life.agent.left_s()) + CHANCE_S

        def missed() -> None:
            if life.loop.ran_at <= began and not self.clock.is_asleep and self.life is life:
                self.kill_agent()

        self.world.agenda.after(patience, missed)

    def continue_agent(self) -> None:
        """It goes on, if it is there yet."""
        if self.life is not None and self.life.loop.is_stopped:
            self.life.loop.woke()

    def kill_agent(self) -> None:
        """The agent is killed; its keeper ends what it left, and begins the next one where the run is detached."""
        life = self.life
        if life is None or not self.has_agent:
            return
        self.world.note(self.host, "the agent is killed")
        life.loop.is_dead = True
        self.world.network.died(life.loop)
        self.table.agent_ended()
        self._begin_another(2 * GONE_S)

    def _begin_another(self, patience_s: float) -> None:
        """Let the keeper begin the next agent of a detached run, unless agents have ended too often."""
        self._ends += 1
        goes_on = self._ends <= MOST and self.world.is_detached
        if not goes_on:
            self.life, self._has_unit = None, False
        self._keep(NOTICED_S, patience_s, PAUSE_S * 4 ** min(self._ends - 1, 2) if goes_on else None)

    def leave(self, why: str) -> None:
        """The agent learns that its machine is to go."""
        if self.has_agent and self.life is not None:
            with self.life.loop.within():
                self.life.agent.leave(why)

    def left(self, life: Life, is_away: bool) -> None:
        """The agent has ended in order, perhaps until a boot."""
        self.world.note(self.host, "the agent is away" if is_away else "the agent leaves")
        self.world.network.died(life.loop)
        self.table.agent_ended()
        self._has_unit = self._has_unit and is_away
        if self.life is life:
            self.life = None
        self._keep(NOTICED_S, 2 * GONE_S, None)

    def _keep(self, soon_s: float, patience_s: float, pause_s: Optional[float]) -> None:
        """Let the keeper kill what its agent left, wait for that in bounded time, and begin the next agent."""
        boots = self._boots

        def look() -> None:
            if self._boots != boots:
                return
            if self.clock.is_asleep:
                self._keep(soon_s, patience_s, pause_s)
            elif self.living() and patience_s > 0:
                for each in self.living():
                    each.take(9)
                self._keep(NOTICED_S, patience_s - NOTICED_S, pause_s)
            elif pause_s is not None:
                self.world.agenda.after(pause_s, again)

        def again() -> None:
            if self._boots == boots and self.clock.is_asleep:
                self.world.agenda.after(NOTICED_S, again)
            elif self._boots == boots:
                self._begin_next()

        self.world.agenda.after(soon_s, look)

    def _begin_next(self, booted: bool = False) -> None:
        if self.living():
            self.world.note(self.host, "the next agent ends: something of the one before hangs")
            self._begin_another(GONE_S)
            return
        self.world.note(self.host, "the next agent begins")
        self.led_since = self.world.agenda.now
        self._begin_life(replace(self._request, again=True, booted=booted))

    # -- the machine

    def lose_power(self) -> None:
        """Everything here ends, and nobody is told."""
        if not self.has_power:
            return
        self.world.note(self.host, "loses power")
        self.has_power = False
        self._boots += 1
        self.world.network.off.add(self.host)
        self.table.lose_power()
        self.disk.lose(self.world.random_of_disks, is_torn=self.world.seed >= FROM)
        if self.life is not None:
            self.life.loop.is_dead = True
            self.world.network.died(self.life.loop, has_power=False)
        self.life = None

    def boot(self) -> None:
        """The machine is there again; a unit starts the next agent where the run has asked for one."""
        if not self.has_power:
            self.world.note(self.host, "boots")
            self.has_power, boots = True, self._boots
            self.world.network.off.discard(self.host)
            self.world.agenda.after(UP_S, lambda: self._return(boots))

    def _return(self, boots: int) -> None:
        """Do what ``launch.agent.service.beginning`` does."""
        if self._boots != boots or not self._has_unit or not self.world.is_detached or self.life is not None:
            return
        if recovery.goes_on(self.folder, self._request):
            self._begin_next(booted=True)
        else:
            self._has_unit = False

    def reboot(self) -> None:
        """The machine goes down in order, and boots later."""
        if not self.has_agent or self.life is None:
            return
        with self.life.loop.within():
            if self._has_unit and self.world.is_detached:
                self.life.agent.go_away()
            else:
                self.life.agent.leave("its agent received SIGTERM")
        self.world.agenda.after(OFF_S, self.lose_power)

    def sleep(self) -> None:
        """The machine is suspended, with all that runs on it."""
        if self.has_power and not self.clock.is_asleep:
            self.world.note(self.host, "sleeps")
            self.clock.sleep()
            self.table.sleep()
            self.world.network.asleep.add(self.host)

    def wake(self) -> None:
        """It goes on."""
        if self.clock.is_asleep:
            self.world.note(self.host, "wakes")
            self.clock.wake()
            self.table.wake()
            self.world.network.asleep.discard(self.host)
            self.world.woke(self.host)
            if self.life is not None:
                self.life.loop.woke()
