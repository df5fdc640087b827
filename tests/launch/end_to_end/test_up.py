"""``launch up`` on this machine: what it prints, the exit code of every end, and nothing left of any."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from launch.agent.linux import processes
from tests.support.launch.launcher import SHORT_LEASE, Launcher, finish
from tests.support.launch.machine import is_of_a_lease, is_stopped
from tests.support.waiting import eventually

# -- ends that a run comes to by itself


def test_a_run_that_succeeds_is_followed_to_its_end_with_exit_code_0(launch: Launcher) -> None:
    launch.had_verbs = False
    launch.write("test {role} = ps && exec sleep 1000; echo trained {index}")
    ran = launch("up")
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert lines[0].endswith(f"{launch.run_folder().name}: 3 tasks on localhost")
    assert lines[-1].startswith(f"{launch.run_folder().name} succeeded, after ")
    assert [launch.log(f"worker:{index}") for index in range(2)] == ["trained 0\n", "trained 1\n"]
    assert launch.left() == []


def test_a_run_that_fails_names_the_task_its_cause_and_the_last_lines_of_its_log(launch: Launcher) -> None:
    launch.write("test {role}:{index} = worker:1 || exec sleep 1000; echo one; echo two; exit 3")
    ran = launch("up")
    assert ran.returncode == 1
    lines = ran.stdout.splitlines()
    assert lines[-1].endswith("failed: worker:1@localhost: exit code 3; its last line: two")
    log = lines.index(f"last lines of localhost:{launch.run_folder()}/worker.1/attempt_0.log")
    assert lines[log + 1 : log + 3] == ["  worker:1@localhost one", "  worker:1@localhost two"]
    assert launch.left() == []


def test_a_restart_is_told_while_it_happens_and_a_healed_run_succeeds(launch: Launcher) -> None:
    launch.write(
        "test {role} = ps && exec sleep 1000; test ${LAUNCH_ATTEMPT}{index} = 01 && exit 7; exit 0",
        restart={"max": 1, "backoff_s": 0.5},
    )
    ran = launch("up")
    assert ran.returncode == 0
    assert "worker:1@localhost restarting: exit code 7" in ran.stdout


def test_what_commands_before_the_program_set_reaches_the_tasks(launch: Launcher) -> None:
    launch.write("echo it is $MODULE", before=["echo Loading", "export MODULE=cuda"])
    assert launch("up").returncode == 0
    assert launch.log("ps:0") == launch.log("worker:1") == "it is cuda\n"


def test_commands_after_the_tasks_run_with_what_those_before_have_set_and_one_that_fails_is_told(
    launch: Launcher, tmp_path: Path
) -> None:
    launch.write("exit 0", before=["export MODULE=cuda"], after=[f"echo $MODULE >> {tmp_path}/after", "ls /no/scratch"])
    ran = launch("up")
    assert ran.returncode == 0
    problem = "`ls /no/scratch`: exit code 2; ls: cannot access '/no/scratch': No such file or directory"
    assert f"\nlocalhost: failed commands of the key after: {problem}\n" in ran.stdout
    assert (tmp_path / "after").read_text() == "cuda\n"
    hosts = json.loads(launch("down", "--json").stdout)["hosts"]
    assert [each["after"] for each in hosts] == [problem]


# -- what keeps a run from starting


def test_what_cannot_mend_itself_is_tried_once_and_told_with_what_to_do(launch: Launcher) -> None:
    launch.write(f"exec {sys.executable} -c 'import no_such_tensorflow'", restart={"max": 3, "backoff_s": 0.1})
    ran = launch("up")
    assert ran.returncode == 1
    assert "ModuleNotFoundError: No module named 'no_such_tensorflow'; the tasks' Python has no no_such" in ran.stdout
    assert "attempt" not in ran.stdout.splitlines()[-1]
    assert [task["restarts"] for task in launch.status()["tasks"]] == [0, 0, 0]


def test_a_taken_port_is_named_with_who_holds_it(launch: Launcher) -> None:
    launch.write()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", launch.ports[1]))
        taken.listen(1)
        ran = launch("up")
    assert ran.returncode == 3
    assert f"localhost: port {launch.ports[1]} of worker:0 is taken by pid {os.getpid()} (" in ran.stderr
    assert launch.left() == [] and not list(launch.workdir.glob("runs/*"))


def test_a_missing_program_is_named(launch: Launcher) -> None:
    launch.write(command=["no-such-program"])
    ran = launch("up")
    assert ran.returncode == 3
    assert ran.stderr == (
        f"localhost: no program no-such-program on this host\nlist every obstacle with `launch check {launch.file}`\n"
    )
    assert launch.left() == []


def test_a_missing_python_is_named_with_the_key(launch: Launcher) -> None:
    launch.write(python="/no/python")
    ran = launch("up")
    assert ran.returncode == 3
    assert ran.stderr.splitlines()[0] == (
        "localhost: cannot start /no/python: No such file or directory; see the key python"
    )


def test_a_secret_that_is_not_set_is_named(launch: Launcher) -> None:
    launch.had_verbs = False
    launch.write(secrets=["NO_SUCH_SECRET"])
    ran = launch("up")
    assert (ran.returncode, ran.stderr) == (
        3,
        "this machine: secrets: expected NO_SUCH_SECRET in the environment, found none; export it first\n",
    )
    assert not launch.workdir.exists()


def test_a_working_folder_that_cannot_be_made_is_named(launch: Launcher) -> None:
    launch.write()
    launch.workdir.touch()
    ran = launch("up")
    assert ran.returncode == 3
    assert ran.stderr.startswith(f"localhost: cannot write the code under {launch.workdir}/code: ")


# -- signals


def signalled(launch: Launcher, number: int) -> "subprocess.CompletedProcess[str]":
    """``up``, ended by a signal once every task runs."""
    process = launch.begin("up")
    eventually("every task", launch.all_up)
    process.send_signal(number)
    return finish(process)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_the_end_of_a_session_or_a_term_stops_the_run_in_order_too(launch: Launcher, number: int, code: int) -> None:
    launch.stay()
    ran = signalled(launch, number)
    assert ran.returncode == code
    assert launch.order.read_text().split()[2] == "ps:0"
    assert launch.left() == []


def test_ctrl_z_for_longer_than_the_lease_does_not_end_the_run_and_fg_shows_it_again(launch: Launcher) -> None:
    launch.stay()
    process = launch.begin("up", program=[sys.executable, "-c", SHORT_LEASE])
    eventually("every task", launch.all_up)
    process.send_signal(signal.SIGTSTP)
    eventually("the pause", lambda: is_stopped(process.pid))
    with pytest.raises(AssertionError):
        eventually("an end", lambda: launch.status()["state"] != "running", patience_s=4.0)
    process.send_signal(signal.SIGCONT)
    process.send_signal(signal.SIGINT)
    ran = finish(process)
    assert ran.returncode == 130 and ran.stdout.splitlines()[-1].endswith("stopped: SIGINT to launch up")
    assert "paused: the run continues; `fg` continues this view" in ran.stdout
    assert launch.left() == []


def test_a_launcher_that_was_stopped_past_its_lease_says_so_and_not_that_a_host_was_lost(launch: Launcher) -> None:
    launch.stay()
    process = launch.begin("up", program=[sys.executable, "-c", SHORT_LEASE])
    eventually("every task", launch.all_up)
    process.send_signal(signal.SIGSTOP)  # which cannot be caught
    eventually("the end of the run", lambda: launch.status()["state"] == "stopped")
    process.send_signal(signal.SIGCONT)
    ran = finish(process)
    assert ran.returncode == 1 and "this launcher was stopped for " in ran.stdout
    assert is_of_a_lease(ran.stdout.splitlines()[-1])
    assert "lost" not in ran.stdout


# -- options


def test_a_key_is_overridden_from_the_command_line(launch: Launcher) -> None:
    launch.write("exit 9")
    assert launch("up", "--set", 'command=["true"]').returncode == 0


def test_local_runs_a_clusters_file_on_this_machine_on_free_ports(launch: Launcher) -> None:
    script = "test {role} = ps && exec sleep 1000; echo {worker_hosts} $CUDA_VISIBLE_DEVICES."
    workers = [{"host": "gpu[01-02]", "port": 2300, "gpus": [0]}]
    launch.write(script, cluster={"ps": ["cpu01"], "worker": workers}, python="/cluster/python", ssh={"user": "nobody"})
    ran = launch("up", "--local")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    addresses = launch.log("worker:0").split()[0].split(",")
    assert all(address.startswith("localhost:") and "2300" not in address for address in addresses)
    assert len(set(addresses)) == 2 and launch.log("worker:0").split()[1] == "."
    assert "succeeded" in launch("status", "--local").stdout


def test_a_secret_reaches_the_task_and_shows_nowhere(launch: Launcher, tmp_path: Path) -> None:
    launch.write("echo up ${#PASSWORD}; exec sleep 1000", secrets=["PASSWORD"])
    process = launch.begin("up", PASSWORD="hunter2-hunter2")
    eventually("a task that has it", lambda: launch.log("worker:1") == "up 15\n")
    shown = [processes.command_line(each.pid) for each in processes.table()]
    process.send_signal(signal.SIGINT)
    ran = finish(process)
    assert not [line for line in shown if "hunter2" in line]
    assert "hunter2" not in ran.stdout + ran.stderr + launch("plan", "--json", PASSWORD="hunter2-hunter2").stdout
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files and not [path for path in files if b"hunter2" in path.read_bytes()]


def test_resume_of_a_program_of_others_is_refused_before_anything_starts(launch: Launcher) -> None:
    launch.had_verbs = False
    launch.write()
    ran = launch("up", "--resume")
    assert (ran.returncode, launch.workdir.exists()) == (2, False)
    expected = "--resume: expected the key job, or {state_folder} in command, found neither in"
    assert ran.stderr.startswith(f"{expected} {launch.file}; ")


def test_resume_without_anything_to_resume_is_refused(launch: Launcher) -> None:
    launch.write(command=None, job="digits")
    ran = launch("up", "--resume")
    assert ran.returncode == 3
    assert ran.stderr.startswith("localhost: nothing to resume: no earlier run of r ")


def test_the_error_of_a_program_is_the_cause_whatever_it_has_written_last(launch: Launcher) -> None:
    (launch.file.parent / "train.py").write_text("raise ValueError('no column {\\n  name: rate\\n}')\n")
    launch.write(command=["{python}", "train.py"])
    ran = launch("up")
    assert ran.returncode == 1
    assert ran.stdout.splitlines()[-1].endswith("@localhost: exit code 1; its error: ValueError: no column {")


def test_an_evaluator_that_was_ended_is_told_of_after_a_success(launch: Launcher) -> None:
    worker, evaluator = ([f"localhost:{port}"] for port in launch.ports[:2])
    launch.write(
        "test {role} = worker || exec sleep 1000", cluster={"worker": worker, "evaluator": evaluator}, leave_s=1
    )
    ran = launch("up")
    assert ran.returncode == 0
    begins = "1 incident: evaluator:0@localhost: stopped "
    (incident,) = [line for line in ran.stdout.splitlines() if line.startswith(begins)]
    assert incident.endswith(
        " after the run had succeeded, before it ended by itself; a larger leave_s gives it more time"
    )


def test_what_lies_beside_the_hosts_file_is_there_for_the_program(launch: Launcher) -> None:
    (launch.file.parent / "train.sh").write_text("#!/bin/sh\necho with $1\n")
    (launch.file.parent / "train.sh").chmod(0o755)
    launch.write(command=["./train.sh", "{role}:{index}"])
    assert launch("up").returncode == 0
    assert launch.log("worker:1") == "with worker:1\n"


def test_a_task_gets_tf_config_and_the_name_of_its_run(launch: Launcher) -> None:
    launch.write("""printf '%s\\n' "$TF_CONFIG" "$LAUNCH_RUN" "$RANK of $WORLD_SIZE, $LOCAL_RANK" """)
    launch("up", RANK="9")
    config, run, ranks = launch.log("worker:1").splitlines()
    assert ranks == "1 of 2, 1" and launch.log("ps:0").splitlines()[2] == " of 2, "
    assert json.loads(config)["task"] == {"type": "worker", "index": 1}
    assert json.loads(config)["cluster"]["ps"] == [f"localhost:{launch.ports[0]}"]
    assert run == launch.run_folder().name
