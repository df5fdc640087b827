"""The tasks of one host: real processes, and a clock that the test turns."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Dict, Iterator, List

import pytest

from launch.agent.endings.exits import HANG_S
from launch.agent.linux import processes
from launch.agent.linux.sockets import free_ports
from launch.agent.protocol.messages import Advanced, Exited, GpuFailed, Measured, Started
from launch.agent.tasks import attempt, spawning
from launch.agent.tasks.host_tasks import LINGER_S
from launch.agent.tasks.task_log import LogBound, gap_of
from launch.agent.tasks.work_folder import LOOK_S
from tests.support.agent.bench import Bench
from tests.support.launch.machine import lives
from tests.support.waiting import eventually

SUCCESS = '{"succeeded": true, "step": 9, "checkpoint": "%s/model-9", "checkpoint_step": 9}'
IGNORES_TERM = "import signal, time; signal.signal(15, lambda *_: print('no', flush=True)); print('up', flush=True)\n"


# -- starting


def test_a_started_task_is_told_with_its_pid_gpus_and_log(bench: Bench) -> None:
    event = bench.sh("exec sleep 60")
    assert event == Started(
        "worker:0", 0, bench.tasks.running["worker:0"].process.pid, [2, 3], str(bench.folder.log("worker:0", 0))
    )


def test_a_program_is_told_how_many_gpus_it_has(bench: Bench) -> None:
    bench.sh("echo {gpus} of ${gpus:-none}; exec sleep 60")
    bench.logged("2 of none\n")


def test_a_program_that_is_not_there_is_told_as_an_exit_without_a_code(bench: Bench) -> None:
    assert bench.start("no-such-program") is None
    cause = "cannot start no-such-program: No such file or directory"
    assert bench.events == [Exited("worker:0", 0, None, cause, kind="not-started")]


def test_no_second_process_of_a_task_begins_beside_the_first(bench: Bench) -> None:
    """A record in the place of the first one's would leave a process that nobody ends."""
    first = bench.sh("exec sleep 60")
    assert first is not None
    bench.events.clear()
    bench.tasks.start("worker:0", 1)
    cause = f"attempt 0 of worker:0 still runs here (pid {first.pid}), so attempt 1 cannot start"
    assert bench.events == [Exited("worker:0", 1, None, cause, kind="not-started", retry=False)]
    assert bench.tasks.running["worker:0"].process.pid == first.pid
    assert not bench.folder.log("worker:0", 1).exists()


def test_a_repeated_order_to_start_changes_nothing(bench: Bench) -> None:
    first = bench.sh("exec sleep 60")
    assert first is not None
    bench.events.clear()
    bench.tasks.start("worker:0", 0)
    assert bench.events == [] and bench.tasks.running["worker:0"].process.pid == first.pid


def test_a_code_folder_that_is_not_there_is_named(bench: Bench) -> None:
    bench.start("true", folder="/no/such/folder")
    cause = "cannot start /no/such/folder: No such file or directory"
    assert bench.events == [Exited("worker:0", 0, None, cause, kind="not-started")]


def test_a_program_is_found_beside_the_job(bench: Bench) -> None:
    program = bench.code / "train.sh"
    program.write_text("#!/bin/sh\nexit 7\n")
    program.chmod(0o755)
    bench.start("./train.sh")
    assert bench.comes(Exited).exit_code == 7


def test_a_task_gets_the_environment_of_the_contract(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTPS_PROXY", "grpc_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://proxy:3128")
    monkeypatch.setenv("FROM_THE_HOST", "kept")
    script = "import json, os; print(json.dumps(dict(os.environ)))"
    bench.start(sys.executable, "-c", script, env={"CUDA_VISIBLE_DEVICES": "share", "COLOUR": "blue"})
    bench.comes(Exited)
    env = json.loads(bench.folder.log("worker:0", 0).read_text())
    assert not [name for name in env if name.lower().endswith("_proxy")]
    assert (env["FROM_THE_HOST"], env["COLOUR"]) == ("kept", "blue")
    assert (env["CUDA_VISIBLE_DEVICES"], env["CUDA_DEVICE_ORDER"]) == ("2,3", "PCI_BUS_ID")
    assert (env["LAUNCH_ATTEMPT"], env["LAUNCH_TASK_DIR"]) == ("0", str(bench.folder.task("worker:0")))


def test_a_proxy_that_the_hosts_file_names_is_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    bench.sh('echo "$http_proxy"', env={"http_proxy": "http://ours:1"})
    bench.comes(Exited)
    assert bench.folder.log("worker:0", 0).read_text() == "http://ours:1\n"


def test_a_secret_is_in_the_environment_and_nowhere_else(bench: Bench) -> None:
    event = bench.sh("echo got ${#PASSWORD}; exec sleep 60", secrets={"PASSWORD": "hunter2-hunter2"})
    bench.logged("got 15")
    assert event is not None and "hunter2" not in processes.command_line(event.pid)
    files = [path for path in bench.folder.workdir.rglob("*") if path.is_file()]
    assert files and not [path for path in files if b"hunter2" in path.read_bytes()]


def test_each_attempt_has_a_log_of_its_own_and_knows_its_number(bench: Bench) -> None:
    bench.sh("echo attempt $LAUNCH_ATTEMPT; exit 1")
    bench.comes(Exited)
    bench.start(attempt=1)
    bench.comes(Exited, lambda event: event.attempt == 1)
    assert [path.read_text() for path in bench.folder.logs("worker:0")] == ["attempt 0\n", "attempt 1\n"]


def test_the_log_of_a_task_that_goes_on_writing_stays_within_its_bound(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spawning, "LogBound", partial(LogBound, first=1 << 14, newest=1 << 16, step=1 << 13))
    bench.sh("yes | head -c 1000000; echo done; exec sleep 60")
    bench.logged("done")
    bench.tasks.poll(10.0)
    log = bench.folder.log("worker:0", 0)
    assert gap_of(log).end > 900_000 and log.stat().st_blocks * 512 < 200_000


def test_what_an_earlier_attempt_wrote_is_not_taken_for_the_next_ones(bench: Bench) -> None:
    script = """
        cd "$LAUNCH_TASK_DIR"; test $LAUNCH_ATTEMPT = 1 && exit 5
        echo '{"step": 3}' > progress.json; echo '{"succeeded": true}' > outcome.json
    """
    bench.sh(script)
    bench.comes(Exited, lambda event: bool(event.outcome))
    bench.events.clear()
    bench.start(attempt=1)
    exited = bench.comes(Exited)
    assert (exited.exit_code, exited.outcome) == (5, None)
    assert not [event for event in bench.events if isinstance(event, Advanced)]


class FailedGpus:
    """A driver that has lost two GPUs, of which this host's task uses one."""

    def due(self, now: float) -> bool:
        return True

    def look(self, now: float) -> Dict[int, str]:
        return {0: "GPU 0: lost", 3: "GPU 3: lost"}


def test_a_gpu_that_failed_is_told_with_the_tasks_that_use_it_and_another_is_not(bench: Bench) -> None:
    bench.start("sleep", "1000")
    bench.tasks._reports._failures = FailedGpus()  # type: ignore[assignment]
    bench.tasks.poll(0.0)
    assert [event for event in bench.events if isinstance(event, GpuFailed)] == [GpuFailed(["worker:0"], "GPU 3: lost")]


# -- how a task ends


def test_a_failed_task_is_told_with_its_exit_code_and_its_last_line(bench: Bench) -> None:
    bench.sh("echo first; echo 'out of cheese'; echo; exit 3")
    cause, lines = "exit code 3; its last line: out of cheese", ["first", "out of cheese"]
    assert bench.comes(Exited) == Exited("worker:0", 0, 3, cause, kind="exit", lines=lines, error="")


def test_the_kernel_ends_a_task_or_its_child_before_the_agent_when_it_wants_for_memory(bench: Bench) -> None:
    bench.sh("cat /proc/self/oom_score_adj; sh -c 'cat /proc/self/oom_score_adj'; exit 1")
    bench.comes(Exited)
    task, child = map(int, bench.folder.log("worker:0", 0).read_text().split())
    ours = int(Path("/proc/self/oom_score_adj").read_text())
    assert task == child == ours + processes.OOM_RAISE


def test_a_task_that_a_signal_ended_is_told_with_the_signals_name(bench: Bench) -> None:
    bench.sh("kill -SEGV $$")
    assert bench.comes(Exited) == Exited("worker:0", 0, -signal.SIGSEGV, "killed by SIGSEGV", kind="signal", error="")


class OneKill:
    """A kernel that owns up to having killed one process for want of memory."""

    def __init__(self) -> None:
        self.asked = 0

    def look(self, now: float) -> None:
        pass

    def took(self, pid: int, now: float) -> bool:
        self.asked += 1
        return True


def test_a_task_that_the_kernel_has_killed_for_want_of_memory_says_so(bench: Bench) -> None:
    bench.sh("echo hungry; kill -KILL $$")
    bench.tasks._exits._memory_kills = OneKill()  # type: ignore[assignment]
    exited = bench.comes(Exited)
    assert (exited.kind, exited.cause, exited.lines) == (
        "out-of-memory", "killed by the kernel: out of memory (SIGKILL); its last line: hungry", ["hungry"],
    )  # fmt: skip


def test_a_task_that_we_killed_ourselves_did_not_want_for_memory(bench: Bench) -> None:
    bench.start("sleep", "1000")
    bench.tasks._exits._memory_kills = kernel = OneKill()  # type: ignore[assignment]
    bench.tasks.stop("worker:0", 0.0, now=0.0)
    exited = bench.comes(Exited)
    assert (exited.kind, exited.cause, kernel.asked) == ("signal", "killed by SIGKILL", 0)


def test_the_tasks_own_word_is_the_cause_before_its_last_line(bench: Bench) -> None:
    bench.sh("""echo '{"succeeded": false, "cause": "loss is nan", "retry": false}' > $LAUNCH_TASK_DIR/outcome.json
                echo bye; exit 1""")
    exited = bench.comes(Exited)
    assert exited.cause == "loss is nan"
    assert exited.outcome is not None and exited.outcome["retry"] is False


def test_a_worker_that_says_it_succeeded_is_believed(bench: Bench) -> None:
    bench.sh("""echo '{"succeeded": true}' > $LAUNCH_TASK_DIR/outcome.json; kill -9 $$""")
    exited = bench.comes(Exited)
    assert (exited.cause, exited.exit_code) == (None, -signal.SIGKILL)
    assert exited.outcome is not None and exited.outcome["succeeded"]


def test_a_chief_is_believed_when_its_final_checkpoint_is_there(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "model-9.index").touch()
    bench.sh(f"echo '{SUCCESS % tmp_path}' > $LAUNCH_TASK_DIR/outcome.json", chief=True)
    exited = bench.comes(Exited)
    assert exited.outcome is not None and exited.outcome["succeeded"] and exited.cause is None


def test_a_chief_whose_final_checkpoint_is_not_there_has_failed(bench: Bench, tmp_path: Path) -> None:
    bench.sh(f"echo '{SUCCESS % tmp_path}' > $LAUNCH_TASK_DIR/outcome.json", chief=True)
    exited = bench.comes(Exited)
    assert exited.outcome is not None and not exited.outcome["succeeded"]
    assert exited.cause == f"it reports success, but its final checkpoint is missing: {tmp_path}/model-9"


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"colour": 1}', "{}"])
def test_an_outcome_that_cannot_be_read_is_a_failure_that_says_so(bench: Bench, text: str) -> None:
    bench.sh(f"""printf %s '{text}' > $LAUNCH_TASK_DIR/outcome.json""")
    exited = bench.comes(Exited)
    assert exited.outcome is not None and not exited.outcome["succeeded"]
    assert exited.cause is not None and exited.cause.startswith("its outcome cannot be read: ")


def test_an_exit_is_told_only_when_the_whole_group_is_gone(bench: Bench) -> None:
    bench.sh("sleep 60 & echo $!")
    exited = bench.comes(Exited)
    assert exited.exit_code == 0
    child = int(bench.folder.log("worker:0", 0).read_text())
    assert not lives(child)


def test_a_task_that_lives_on_after_its_outcome_is_ended(bench: Bench) -> None:
    bench.sh("""echo '{"succeeded": true}' > $LAUNCH_TASK_DIR/outcome.json; echo said; exec sleep 60""")
    bench.logged("said")
    bench.tasks.poll(100.0)
    bench.tasks.poll(100.0 + LINGER_S - 0.1)
    assert not processes.has_exited(bench.tasks.running["worker:0"].process.pid)
    bench.now = 100.0 + LINGER_S
    exited = bench.comes(Exited)
    assert exited.outcome is not None and exited.outcome["succeeded"]


# -- stopping


def test_a_stop_is_a_term_that_lets_the_task_leave_in_order(bench: Bench) -> None:
    bench.sh("trap 'echo leaving; exit 0' TERM; echo up; while :; do sleep 0.05; done")
    bench.logged("up")
    bench.tasks.stop("worker:0", 60.0, now=0.0)
    assert bench.comes(Exited).exit_code == 0
    assert bench.folder.log("worker:0", 0).read_text().endswith("leaving\n")


def test_a_task_that_ignores_term_is_killed_when_its_grace_is_over_and_not_before(bench: Bench) -> None:
    bench.start(sys.executable, "-c", IGNORES_TERM + "while 1: time.sleep(1)")
    bench.logged("up")
    bench.tasks.stop("worker:0", 5.0, now=100.0)
    bench.tasks.poll(100.0)
    bench.logged("no")
    bench.tasks.poll(104.9)
    assert not processes.has_exited(bench.tasks.running["worker:0"].process.pid)
    bench.now = 105.0
    assert bench.comes(Exited).exit_code == -signal.SIGKILL


def test_a_second_stop_can_only_shorten_the_grace(bench: Bench) -> None:
    bench.start(sys.executable, "-c", IGNORES_TERM + "while 1: time.sleep(1)")
    bench.logged("up")
    bench.tasks.stop("worker:0", 5.0, now=100.0)
    bench.tasks.stop("worker:0", 60.0, now=100.0)
    bench.now = 105.0
    assert bench.comes(Exited).exit_code == -signal.SIGKILL


def test_without_grace_a_task_is_killed_at_once(bench: Bench) -> None:
    bench.sh("trap 'echo TERM came' TERM; echo up; while :; do sleep 0.05; done")
    bench.logged("up")
    bench.tasks.stop("worker:0", 0.0, now=0.0)
    assert bench.comes(Exited).exit_code == -signal.SIGKILL
    assert bench.folder.log("worker:0", 0).read_text() == "up\n"


def test_a_stop_reaches_the_children_of_a_task_too(bench: Bench) -> None:
    bench.sh("sleep 60 & echo $!; exec sleep 60")
    bench.logged("\n")
    child = int(bench.folder.log("worker:0", 0).read_text())
    bench.tasks.stop("worker:0", 60.0, now=0.0)
    assert bench.comes(Exited).exit_code == -signal.SIGTERM
    assert not lives(child)


# -- processes that left their task's session


@pytest.fixture
def adopting() -> Iterator[None]:
    """This process adopts orphans, as an agent does."""
    processes.adopt_orphans()
    yield
    processes._libc.prctl(processes._PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


DAEMON = "setsid sh -c 'echo $$; exec sleep 1000' & "
UNMARKED = "setsid env -i sh -c 'echo $$; exec /bin/sleep 1000' & "


def is_gone(pid: int) -> bool:
    return processes.inspect(pid) is None


def daemon_of(bench: Bench, count: int = 1) -> int:
    log = bench.folder.log("worker:0", 0)
    eventually("pids in the log", lambda: log.read_text().count("\n") >= count)
    return int(log.read_text().split()[-1])


def test_a_task_has_exited_when_its_child_in_a_session_of_its_own_is_gone_and_reaped(
    bench: Bench, adopting: None
) -> None:
    bench.sh(DAEMON + "sleep 0.3; exit 3")
    child = daemon_of(bench)
    assert bench.comes(Exited).exit_code == 3
    assert is_gone(child)


def test_a_child_that_gave_its_environment_up_is_known_from_when_its_parents_lived(
    bench: Bench, adopting: None
) -> None:
    os.mkfifo(str(bench.code / "go"))
    bench.sh(UNMARKED + "read line < go; exit 3")
    child = daemon_of(bench)
    bench.tasks.poll(100.0)  # a look at the processes while its parent lives
    (bench.code / "go").write_text("\n")
    bench.comes(Exited)
    assert is_gone(child)


def test_a_stop_reaches_a_child_in_a_session_of_its_own(bench: Bench, adopting: None) -> None:
    bench.sh(f"{DAEMON}{UNMARKED}wait")
    first = daemon_of(bench)
    second = daemon_of(bench, count=2)
    bench.tasks.stop("worker:0", 0.0, now=0.0)
    bench.comes(Exited)
    assert is_gone(first) and is_gone(second)


def test_a_term_lets_a_child_in_a_session_of_its_own_leave_in_order(bench: Bench, adopting: None) -> None:
    (bench.code / "child.sh").write_text("trap 'echo left > left; exit' TERM; echo $$; while :; do sleep 0.05; done")
    bench.sh("setsid sh child.sh & trap : TERM; wait; while test ! -e left; do sleep 0.05; done")
    daemon_of(bench)
    bench.tasks.stop("worker:0", 60.0, now=0.0)
    bench.comes(Exited)
    assert (bench.code / "left").read_text() == "left\n"


def test_the_next_attempt_of_a_task_finds_the_port_of_a_former_childs_free(bench: Bench, adopting: None) -> None:
    [port] = free_ports(1)
    os.mkfifo(str(bench.code / "go"))
    serve = f"import socket,time;s=socket.socket();s.bind(('127.0.0.1',{port}));s.listen();print('up',flush=1);"
    child = f'setsid {sys.executable} -c "{serve}time.sleep(1000)" & '
    bench.sh(f'test $LAUNCH_ATTEMPT = 1 && exec {sys.executable} -c "{serve}"; {child} read line < go; exit 1')
    bench.logged("up")
    (bench.code / "go").write_text("\n")
    bench.comes(Exited)
    bench.start(attempt=1)
    assert bench.comes(Exited, lambda event: event.attempt == 1).exit_code == 0


def test_a_process_of_another_task_or_of_nobody_is_left_alone(bench: Bench, adopting: None) -> None:
    of_others: List[Dict[str, str]] = [
        {},
        {"LAUNCH_TASK_DIR": str(bench.folder.task("worker:1")), "LAUNCH_ATTEMPT": "0"},
        {"LAUNCH_TASK_DIR": str(bench.folder.task("worker:0")), "LAUNCH_ATTEMPT": "1"},
    ]
    strangers = [
        subprocess.Popen(["sleep", "1000"], start_new_session=True, env={**os.environ, **marks}) for marks in of_others
    ]
    bench.sh(DAEMON + "sleep 0.3; exit 3")
    bench.comes(Exited)
    assert [stranger.poll() for stranger in strangers] == [None, None, None]
    for stranger in strangers:
        stranger.kill()
        stranger.wait()


def test_a_task_that_hangs_in_the_kernel_is_given_up_and_named(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    event = bench.sh("exec sleep 60")
    hanging = bench.tasks.running["worker:0"].process
    monkeypatch.setattr(processes, "has_exited", lambda pid: False)  # what a kernel says of state D
    bench.tasks.stop("worker:0", 0.0, now=100.0)
    bench.tasks.poll(100.0)
    bench.tasks.poll(100.0 + HANG_S - 0.1)
    assert bench.tasks.running and not [each for each in bench.events if isinstance(each, Exited)]
    bench.tasks.poll(100.0 + HANG_S)
    exited = bench.comes(Exited)
    assert event is not None and exited.exit_code is None and not bench.tasks.running
    assert (exited.cause or "").startswith(f"pid {event.pid} was killed and is still there after 10 s; it hangs in ")
    hanging.wait()


def test_a_task_that_was_given_up_hangs_until_all_of_it_is_gone(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.sh("sleep 60 & exec sleep 60")
    leader = bench.tasks.running["worker:0"].process
    eventually("its child", lambda: len(processes.group_members(leader.pid)) == 2)
    (child,) = [each for each in processes.group_members(leader.pid) if each.pid != leader.pid]
    monkeypatch.setattr(attempt, "signal_all", lambda those, number: None)  # no signal reaches it in the kernel
    bench.tasks.stop("worker:0", 0.0, now=100.0)
    for now in (100.0, 100.0 + HANG_S):
        assert not bench.tasks.is_hanging()
        bench.tasks.poll(now)
    assert bench.comes(Exited).exit_code is None and bench.tasks.is_hanging()
    leader.kill()
    leader.wait()
    assert bench.tasks.is_hanging()
    os.kill(child.pid, signal.SIGKILL)
    eventually("the end of its child", lambda: not bench.tasks.is_hanging())


def test_a_child_that_hangs_in_the_kernel_does_not_keep_its_task_from_ending(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.sh("exit 0")
    leader = bench.tasks.running["worker:0"].process
    eventually("its end", lambda: processes.has_exited(leader.pid))
    hanging = processes.Process(1, 0, leader.pid, leader.pid, "D", -1)  # a start time that nothing on this machine has
    monkeypatch.setattr(processes, "table", lambda: [hanging])
    for now in (100.0, 100.0 + HANG_S - 0.1):
        bench.tasks.poll(now)
        assert bench.tasks.running
    bench.tasks.poll(100.0 + HANG_S)
    assert (bench.comes(Exited).cause or "").startswith("pid 1 was killed and is still there after 10 s")
    leader.wait()


def test_a_task_whose_folder_cannot_be_made_is_told_and_ends_nobody_else(bench: Bench) -> None:
    bench.folder.task("worker:0").write_text("a file where the folder should be")
    assert bench.sh("true") is None
    assert (bench.comes(Exited).cause or "").startswith("cannot start ")


def test_to_stop_a_task_that_does_not_run_is_nothing(bench: Bench) -> None:
    bench.sh("true")
    bench.comes(Exited)
    bench.tasks.stop("worker:0", 5.0, now=0.0)
    bench.tasks.stop_all(5.0, now=0.0)
    assert not bench.tasks.running


def test_variables_are_filled_in_on_the_host_and_the_plan_keeps_what_was_written(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/usr/x")
    env = {"LD_LIBRARY_PATH": "/opt/x:$LD_LIBRARY_PATH", "DATA": "~/data", "PRICE": "$$5", "NONE": "<$UNSET_HERE>"}
    bench.sh('echo "$LD_LIBRARY_PATH $DATA $PRICE $NONE $KEY"', env=env, secrets={"KEY": "~/$PATH"})
    bench.logged(f"/opt/x:/usr/x {Path.home()}/data $5 <> ~/$PATH\n")


def test_a_program_is_found_on_a_path_that_extends_the_hosts(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "own-tool").write_text("#!/bin/sh\necho own\n")
    (tmp_path / "own-tool").chmod(0o700)
    bench.start("own-tool", env={"PATH": f"{tmp_path}:$PATH"})
    bench.logged("own\n")


def test_a_value_that_linux_would_refuse_ends_the_start(bench: Bench) -> None:
    assert bench.sh("exec sleep 60", env={"A": "$B$B", "B": "x" * 100_000}) is None
    assert bench.events == [Exited("worker:0", 0, None, "cannot start A: Argument list too long", kind="not-started")]


# -- progress


def test_progress_is_told_when_it_is_new_and_once(bench: Bench) -> None:
    script = """
        tell() { echo "{\\"step\\": $1, \\"loss\\": 0.5}" > .p; mv .p progress.json; }
        cd "$LAUNCH_TASK_DIR"; tell 1; while test ! -e go; do sleep 0.05; done; tell 2; exec sleep 60
    """
    bench.sh(script)
    first = bench.comes(Advanced)
    assert (first.task, first.attempt, first.progress["step"], first.progress["loss"]) == ("worker:0", 0, 1, 0.5)
    for _ in range(5):
        bench.tasks.poll(0.0)
    assert len([event for event in bench.events if isinstance(event, Advanced)]) == 1
    (bench.folder.task("worker:0") / "go").touch()
    bench.comes(Advanced, lambda event: event.progress["step"] == 2)


def test_the_last_progress_is_told_before_the_exit(bench: Bench) -> None:
    bench.sh("""echo '{"step": 7}' > $LAUNCH_TASK_DIR/progress.json""")
    bench.comes(Exited)
    told = [type(event) for event in bench.events if not isinstance(event, Measured)]
    assert told == [Started, Advanced, Exited]


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"colour": 1}'])
def test_progress_that_cannot_be_read_is_passed_over(bench: Bench, text: str) -> None:
    bench.sh(f"""printf %s '{text}' > $LAUNCH_TASK_DIR/progress.json""")
    assert bench.comes(Exited).exit_code == 0
    assert not [event for event in bench.events if isinstance(event, Advanced)]


# -- temporary files


def test_what_a_killed_task_leaves_in_its_tmpdir_is_gone_with_it_and_the_next_attempt_has_its_own(bench: Bench) -> None:
    bench.sh("f=$(mktemp --suffix .py) && echo $f; exec sleep 60")
    bench.logged(".py\n")
    left = Path(bench.folder.log("worker:0", 0).read_text().strip())
    assert left.parent.name.startswith("launch-") and left.exists()
    os.kill(bench.tasks.running["worker:0"].process.pid, signal.SIGKILL)
    bench.comes(Exited)
    eventually("its folder gone", lambda: not left.parent.exists())
    bench.tasks.start("worker:0", 1)
    bench.logged(".py\n", attempt=1)
    second = Path(bench.folder.log("worker:0", 1).read_text().strip()).parent
    assert second.exists() and second != left.parent


def test_an_idle_tmpdir_stays_young_so_that_a_cleanup_by_age_leaves_it(bench: Bench) -> None:
    bench.sh("echo $TMPDIR/; exec sleep 60")
    bench.logged("/\n")
    path = bench.folder.log("worker:0", 0).read_text().strip()
    bench.tasks.poll(bench.now)
    os.utime(path, (0, 0))
    bench.now += LOOK_S / 2
    bench.tasks.poll(bench.now)
    assert os.stat(path).st_mtime == 0
    bench.now += LOOK_S
    bench.tasks.poll(bench.now)
    assert min(os.stat(path).st_atime, os.stat(path).st_mtime) > 1e9


def test_a_users_own_tmpdir_wins(bench: Bench, tmp_path: Path) -> None:
    bench.sh("echo $TMPDIR; exec sleep 60", env={"TMPDIR": str(tmp_path)})
    bench.logged(f"{tmp_path}\n")
    assert not list(bench.folder.task("worker:0").glob("*.tmp"))
