"""A simulated host: it boots, sleeps and loses power; on it a keeper, its agent, and its processes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, List, Mapping, Optional

from cluster.protocol.standby import STANDBY
from launch.agent.service import beginning
from launch.agent.service.keeping import AWAY, FAILED, OVER
from launch.agent.state import plan_file
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest
from tests.simulation.disks import Disk
from tests.simulation.keepers import Keeper, Keepers
from tests.simulation.lives import Life
from tests.simulation.loops import Clock
from tests.simulation.process_table import ProcessTable
from tests.simulation.processes import Process
from tests.simulation.programs import Program
from tests.simulation.runs import FURTHER_FROM
from tests.simulation.training import START_S

UP_S = 20.0  # after a boot, until its unit starts the agent
OFF_S = 2.0  # after the agent has gone away, until the machine is off


class Machine:
    """A host with its clock, files and processes.

    Args:
      world: has agenda, network, training, and takes notes.
      request: of its agent.
    """

    def __init__(self, world: Any, request: RunRequest, rate: float):
        self.world, self.host, self.request = world, request.host, request
        self.clock = Clock(world.agenda, rate)
        self.disk = Disk(self.clock.wall)
        self.folder = RunFolder(self.disk.path("/simulated") / request.host, request.run, request.host)
        self.table = ProcessTable(world.agenda.after, self._ended)
        self.has_power = True
        self._boots = 0
        self.has_unit = False  # which starts the agent after a boot
        self.tidies_s = 0.0  # an agent that has closed its pulse, until it ends
        self.led_since: Optional[float] = None  # since when the newest agent has been there, but for the first
        self.went_on_at = 0.0  # when an agent that was stopped last went on
        self.life: Optional[Life] = None
        self.keepers = Keepers(self)
        world.machines[self.host] = self
        self.begin_run()

    def begin_run(self) -> None:
        """The host is prepared, and its first keeper begins."""
        tasks = [{"name": task.name} for task in self.request.tasks]
        self.disk.write(self.folder.own / plan_file.PLAN, json.dumps({"tasks": tasks}), durable=True)
        self.keepers.begin(self.request)

    def new_keeper(self) -> int:
        """Return the pid of a keeper that begins."""
        return self.table.keeper

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
        process.waits, process.turn_at = False, self.world.agenda.now
        process.lead = self.life.leads if self.life is not None else ""
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
            if self.host in self.world.woken_lately():  # it looks at its clocks the later
                self.world.woken_at[self.host] += seconds

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

    def begin_life(self, request: RunRequest, keeper: Keeper) -> Optional[Life]:
        """An agent begins; None where it cannot."""
        self.world.promises.agent_begins(self)
        if request.again:
            self.world.note(self.host, "the next agent begins")
            self.led_since = self.world.agenda.now
        self.has_unit = request.returns
        self.table.agent = self.world.new_pid()
        self.life = self._life_of(request, keeper)
        return self.life

    def _life_of(self, request: RunRequest, keeper: Keeper) -> Optional[Life]:
        return Life(self, request, keeper.write)

    def stop_agent(self) -> None:
        """The agent's process is stopped; its keeper kills one without a pulse."""
        if self.has_agent and self.life is not None:
            self.world.note(self.host, "the agent is stopped")
            self.world.froze(self.host)
            self.life.loop.is_stopped = True

    def continue_agent(self) -> None:
        """It goes on, if it is there yet."""
        if self.life is not None and self.life.loop.is_stopped:
            self.went_on_at = self.world.agenda.now
            self.life.loop.go_on()

    def kill_agent(self) -> None:
        """Somebody kills the agent, and be it about to end."""
        if self.has_agent and self.life is not None:
            self.life.is_over = False
            self.end_agent("the agent is killed", FAILED)

    def end_agent(self, how: str, code: int) -> None:
        """The agent ends, and its keeper reads that."""
        life = self.life
        if life is None or not self.has_agent:
            return
        self.world.note(self.host, how)
        self._agent_ended(life, code)

    def fail_agent(self) -> None:
        """The agent ends by itself, as by an exception, and be it about to end."""
        if self.has_agent and self.life is not None and not self.is_stopped:
            self.life.is_over = False
            self.end_agent("the agent fails", FAILED)

    def leave(self, why: str) -> None:
        """The agent learns that its machine is to go."""
        if self.has_agent and self.life is not None:
            with self.life.loop.within():
                self.life.agent.leave(why)

    def left(self, life: Life, is_away: bool) -> None:
        """The agent has ended in order, perhaps until a boot."""
        self.world.note(self.host, "the agent is away" if is_away else "the agent leaves")
        self._agent_ended(life, AWAY if is_away else OVER)
        if self.life is life:
            self.life = None

    def _agent_ended(self, life: Life, code: int) -> None:
        life.loop.is_dead = True
        self.world.network.died(life.loop)
        self.table.agent_ended()
        self.keepers.agent_ended(code)

    @property
    def is_unkept(self) -> bool:
        """Whether neither agent nor keeper can end what runs here, as the keeper was stopped or killed."""
        agent_acts = self.has_agent and not self.is_stopped
        keeper = self.keepers.newest
        return not (self.keepers.was_kept or agent_acts or (keeper is not None and keeper.acts))

    def end_left(self) -> None:
        """Do what ``launch down`` does where it finds nobody who answers."""
        if self.is_unkept and self.has_power and not self.clock.is_asleep:
            self.keepers.kill()
            self.kill_agent()
            for each in self.living():
                each.take(9)

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
        self.disk.lose(self.world.random_of_disks, is_torn=self.world.seed >= FURTHER_FROM)
        if self.life is not None:
            self.life.loop.is_dead = True
            self.world.network.died(self.life.loop, has_power=False)
        self.keepers.lose_power()
        self.life = None

    def boot(self) -> None:
        """The machine is there again; a unit starts the next agent where the run has asked for one."""
        if not self.has_power:
            self.world.note(self.host, "boots")
            self.has_power, boots = True, self._boots
            self.world.network.off.discard(self.host)
            self.world.agenda.after(UP_S, lambda: self._return(boots))

    def _return(self, boots: int) -> None:
        """Do what ``launch.agent.service.beginning`` does, where no agent is up."""
        if self._boots != boots or not self.has_unit or self.keepers.newest is not None or self.life is not None:
            return
        if beginning.goes_on(self.folder, self.request):
            self.keepers.begin(replace(self.request, again=True, booted=True))
        else:
            self.has_unit = False

    def reboot(self) -> None:
        """The machine goes down in order, and boots later."""
        if not self.has_agent or self.life is None:
            return
        with self.life.loop.within():
            if self.has_unit:
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
            for each in (self.life, self.keepers.newest):
                if each is not None:
                    each.loop.let_happen()
