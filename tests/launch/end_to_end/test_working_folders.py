"""Where tasks work: in one folder of their host, or each in its own, with what was shipped, fresh in every run."""

import json
import os
import shutil
import signal
from pathlib import Path

from cluster.protocol.outcome import WORK
from tests.support import ROOT
from tests.support.launch.launcher import Launcher
from tests.support.waiting import eventually

SERVES = "test {role} = ps && exec sleep 1000; "
COUNTS = SERVES + "test {index} = 1 || cat {state_folder}/count; test {index} = 1 || echo x >> {state_folder}/count"


def test_what_a_program_keeps_in_its_state_folder_is_there_in_a_resumed_run_and_outlives_a_removal(
    launch: Launcher,
) -> None:
    kept = launch.workdir / "state" / "r"
    launch.write(COUNTS, keep={"runs": 1})
    assert launch("up").returncode == 0
    ran = launch("up")
    refused = (
        f"localhost: {{state_folder}}: expected no files of an earlier run in {kept}, found some; continue from them"
    )
    assert ran.returncode == 3 and refused in ran.stderr and f"`launch up --resume {launch.file}`" in ran.stderr
    assert launch("up", "--resume").returncode == 0
    assert sorted(log.read_text() for log in launch.workdir.glob("runs/*/worker.0/*.log"))[1:] == ["x\n"]
    ran = launch("up", "--resume", "--run", "r-20260101-000000")
    assert ran.returncode == 2 and "belongs to all runs of the name r; leave --run out" in ran.stderr
    assert launch("prune", "--yes").returncode == 0
    assert (kept / "count").read_text() == "x\nx\n"


DOUBLES = """
import json, os
rate = json.load(open("config.json"))["rate"]
print("began with", rate)
json.dump({"rate": 2 * rate}, open("config.json", "w"))
"""


def test_what_a_program_writes_into_its_folder_is_not_there_in_the_next_run(launch: Launcher) -> None:
    (launch.file.parent / "train.py").write_text(DOUBLES)
    (launch.file.parent / "config.json").write_text('{"rate": 0.1}')
    launch.write(command=["sh", "-c", SERVES + "exec {python} train.py"], folder="task")
    for _ in range(3):
        ran = launch("up", "--local")
        assert ran.returncode == 0, ran.stderr
    logs = sorted(launch.workdir.glob("local/runs/*/worker.*/attempt_0.log"))
    assert [log.read_text() for log in logs] == ["began with 0.1\n"] * 6
    assert json.loads((launch.file.parent / "config.json").read_text()) == {"rate": 0.1}


def test_a_worker_that_is_started_again_finds_what_it_wrote_and_no_other_workers(launch: Launcher) -> None:
    launch.write(
        SERVES + "cat ckpt; echo {index} > ckpt; test ${LAUNCH_ATTEMPT} = 1",
        restart={"max": 1, "backoff_s": 0.1},
        folder="task",
    )
    assert launch("up").returncode == 0
    for index in range(2):
        assert launch.log(f"worker:{index}", 0).startswith("cat: ")
        assert launch.log(f"worker:{index}", 1) == f"{index}\n"


# The chief lists a checkpoint as it ends, and the ps has its values elsewhere.
SPLITS = (
    "test {role} = ps && exec sleep 1000; mkdir -p logdir; echo 'model_checkpoint_path: \"m-9\"' > logdir/checkpoint"
)


def test_a_run_that_succeeds_with_a_checkpoint_that_no_restart_can_read_says_so(launch: Launcher) -> None:
    launch.write(SPLITS, folder="task")
    ran = launch("up")
    split = "localhost: logdir/checkpoint names m-9, but its values are not there: each ps writes into its own folder"
    assert ran.returncode == 0 and ran.stdout.count(f"warning: {split}") == 2  # when it was found, and at the end
    (warning,) = launch.status()["warnings"]
    assert warning.startswith(split) and warning.endswith("; name an absolute folder")


# The ps waits for a part of each worker; worker 1 needs what worker 0 wrote before it died.
MEETS = """
mkdir -p ckpt
case {role}:{index}:${LAUNCH_ATTEMPT} in
ps:*) until test -e ckpt/0 && test -e ckpt/1; do sleep 0.05; done; echo ps has $(ls ckpt); exec sleep 1000;;
worker:0:0) echo shipped: $(ls); echo part > ckpt/0; kill -9 $$;;
worker:0:*) echo found $(cat ckpt/0);;
worker:1:*) until test -e ckpt/0; do sleep 0.05; done; cp ckpt/0 ckpt/1;;
esac
"""


def test_the_tasks_of_a_host_share_a_relative_folder_which_a_restart_finds_and_the_next_run_does_not(
    launch: Launcher,
) -> None:
    (launch.file.parent / "train.py").touch()
    launch.write(MEETS, restart={"max": 1, "backoff_s": 0.1})
    for _ in range(2):
        ran = launch("up")
        assert ran.returncode == 0, ran.stdout
        (run,) = launch.workdir.glob("runs/*")
        assert launch.log("worker:0") == "shipped: ckpt hosts.yaml train.py\n"
        assert (launch.log("worker:0", 1), launch.log("ps:0")) == ("found part\n", "ps has 0 1\n")
        (home,) = run.glob("hosts/*")
        assert sorted(str(path.relative_to(home / WORK)) for path in (home / WORK).rglob("*")) == [
            "ckpt", "ckpt/0", "ckpt/1",
        ]  # fmt: skip
        assert not (home / "work.json").exists() and not list(run.glob(f"*/{WORK}"))
        shutil.rmtree(str(run))


def test_of_a_run_that_is_over_what_its_tasks_wrote_stays_and_unchanged_copies_go(launch: Launcher) -> None:
    for name in ("kept.txt", "changed.txt", "lib/part.txt"):
        (launch.file.parent / name).parent.mkdir(exist_ok=True)
        (launch.file.parent / name).write_text("shipped")
    launch.write(SERVES + "echo {index} > changed.txt; mkdir out; echo {index} > out/ckpt", folder="task")
    assert launch("up").returncode == 0
    works = [launch.run_folder() / f"{task}" / "work" for task in ("worker.0", "worker.1")]
    for index, work in enumerate(works):
        left = {str(path.relative_to(work)): path.read_text() for path in work.rglob("*") if path.is_file()}
        assert left == {"changed.txt": f"{index}\n", "out/ckpt": f"{index}\n"}
    assert not (launch.run_folder() / "ps.0" / "work").exists()


JOB = """
import os
import tensorflow.compat.v1 as tf
HERE = os.path.dirname(__file__)
open("relative", "a").write("once\\n")
open(os.path.join(HERE, "beside"), "a").write("once\\n")
print("works in", os.getcwd(), "with", open(os.path.join(HERE, "data.txt")).read())
raise ValueError("enough")
"""


def test_a_job_works_in_a_folder_of_its_own_too_and_finds_its_data_beside_it(launch: Launcher) -> None:
    (launch.file.parent / "job.py").write_text(JOB)
    (launch.file.parent / "data.txt").write_text("data")
    ps, worker = (f"localhost:{port}" for port in launch.ports[:2])
    launch.write(command=None, job="job.py", cluster={"ps": [ps], "worker": [worker]})
    for _ in range(2):
        ran = launch("up", "--local")
        own = f'{launch.file.parent}/job.py:8: ValueError: enough, in `raise ValueError("enough")`'
        assert ran.returncode == 1 and own in ran.stdout and f"{WORK}/job.py" not in ran.stdout
    written = sorted(launch.workdir.glob(f"local/runs/*/worker.*/{WORK}/relative"))
    assert len(written) == 2 and {path.read_text() for path in written} == {"once\n"}
    assert {path.with_name("beside").read_text() for path in written} == {"once\n"}
    logs = [path.parents[1] / "attempt_0.log" for path in written]
    assert all(f"works in {log.parent}/work with data" in log.read_text() for log in logs)
    assert not [path for path in (launch.workdir / "local" / "code").rglob("*") if path.name in ("relative", "beside")]


def test_the_tasks_of_a_job_share_a_folder_where_the_file_asks_for_it(launch: Launcher) -> None:
    (launch.file.parent / "job.py").write_text(JOB)
    (launch.file.parent / "data.txt").write_text("data")
    ps, worker = (f"localhost:{port}" for port in launch.ports[:2])
    launch.write(command=None, job="job.py", cluster={"ps": [ps], "worker": [worker]}, folder="run")
    ran = launch("up", "--local")
    own = f'{launch.file.parent}/job.py:8: ValueError: enough, in `raise ValueError("enough")`'
    assert ran.returncode == 1 and own in ran.stdout
    (written,) = launch.workdir.glob(f"local/runs/*/hosts/*/{WORK}/relative")
    found = [path.name for path in sorted(written.parent.iterdir()) if path.name != "__pycache__"]
    assert found == ["beside", "relative"]
    assert (launch.run_folder() / "worker.0" / WORK / "relative").samefile(written)


def test_nothing_of_the_checkout_is_written_by_a_run(launch: Launcher, tmp_path: Path) -> None:
    launch.write("echo x > ./made-by-a-task")
    launch("up")
    assert not list(ROOT.glob("made-by-a-task")) and not (launch.file.parent / "made-by-a-task").exists()


# -- a purge


def test_a_run_whose_code_was_purged_answers_every_verb_and_starts_its_tasks_again(launch: Launcher) -> None:
    (launch.file.parent / "part.txt").write_text("part")
    launch.write("cat part.txt && echo up && sleep 1000 & wait", restart={"max": 3, "backoff_s": 0.1})
    assert launch("up", "-d").returncode == 0
    try:
        eventually("all up", launch.all_up)
        shutil.rmtree(str(launch.workdir / "code"))
        os.kill(next(task["pid"] for task in launch.status()["tasks"] if task["role"] == "ps"), signal.SIGKILL)
        eventually("a ps that is started again", lambda: launch.log("ps:0", 1) == "partup\n")
        put_back = list((launch.workdir / "code").glob("*/launch/agent/*.py"))
        assert put_back
        for path in put_back:
            path.unlink()  # a purge by age leaves folders
        assert launch("status").returncode == 0
        assert launch("restart", "worker:1").returncode == 0
        eventually("a worker that is started again", lambda: launch.log("worker:1", 1) == "partup\n")
        logs = launch("logs").stdout  # lines that are alike are folded
        assert "ps:0" in logs and "worker:" in logs and "partup" in logs
    finally:
        ran = launch("down")
    assert ran.returncode == 0 and launch.left() == []
