"""Try on a real NVIDIA card what the tests try with a script in the place of nvidia-smi.

``python -m tests.benchmarks.cards [OUT]`` needs one card that nobody uses, PyTorch, and the launcher's packages. Each
trial prints what it expects and what it has found. The answers of the driver, and each run's output, are in OUT.
"""

import os
import re
import signal
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List

from launch.agent.diagnosis.sections import SMI_DETAILS
from launch.agent.gpus import nvidia_smi, watching
from tests.benchmarks.cards.running import (
    OUT,
    PATIENCE_S,
    expect,
    failed,
    folder,
    launch,
    metrics,
    shown,
    status,
    up,
    wait,
)  # fmt: skip

ENDLESS = 1 << 40
TRIALS: List[Callable[[], None]] = []


def trial(function: Callable[[], None]) -> Callable[[], None]:
    """Register a trial; they run in the order of this file."""
    TRIALS.append(function)
    return function


def program(*words: Any) -> List[str]:
    """Return the command of one trial."""
    return ["{python}", "train.py", *map(str, words)]


def held() -> str:
    """Return the processes that hold memory of the card, as the driver lists them."""
    return nvidia_smi.ask(nvidia_smi.question("compute-apps", "gpu_uuid", "pid", "used_memory")).strip()


def is_stepping(task: Dict[str, Any]) -> bool:
    """Return whether a task has passed its first hundred steps."""
    return (task.get("step") or 0) > 100


PROGRESS = {"progress": r"^step (?P<step>\d+) loss (?P<loss>\S+)"}


@trial
def answers_of_the_driver() -> None:
    """Every query of the product is answered; the answers are kept."""
    asked = [
        ["nvidia-smi", "-L"],
        nvidia_smi.ASK,
        nvidia_smi.ASK_LESS,
        nvidia_smi.question("gpu", "driver_version", "uuid", "name"),
        nvidia_smi.question("gpu", "index", "utilization.gpu", "memory.used"),
        nvidia_smi.question("gpu", "index", "pci.bus_id"),
        SMI_DETAILS,
    ]
    with (OUT / "answers.txt").open("w") as kept:
        for argv in asked:
            done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
            print(f"$ {' '.join(argv)}\n{done.stdout}(exit {done.returncode})\n", file=kept)
            expect(" ".join(argv)[:90], done.stdout.splitlines()[:1], done.returncode == 0)
    health = nvidia_smi.health_of_all()
    expect("health, by the first query", health, nvidia_smi.read_health(nvidia_smi.ask(nvidia_smi.ASK)) == health != {})
    began = time.monotonic()
    failures = watching.Failures()
    failures.look(0.0)
    time.sleep(3)
    expect("no card has failed", failures.look(time.monotonic()), not failures.look(time.monotonic()))
    expect("cards that are watched", failures._cards, len(failures._cards) == 1)
    print(f"       the kernel's messages: {os.access('/dev/kmsg', os.R_OK)}, {time.monotonic() - began:.1f} s")


@trial
def before_a_run() -> None:
    """`check` and `plan` know the card, and refuse a second one."""
    file = folder("before", program(10))
    done = launch("check", file)
    expect("check of a free card", done.stdout.strip(), done.returncode == 0)
    done = launch("plan", file)
    expect("plan", done.stdout.strip(), done.returncode == 0)
    many = folder("many", program(10), cluster={"worker": [{"host": "localhost", "gpus": 2}]})
    done = launch("check", many)
    expect("check of two cards", done.stdout.strip(), done.returncode == 4 and "found 1 GPU(s)" in done.stdout)
    done = launch("up", many)
    expect("up with two cards", done.stdout.strip()[-300:], done.returncode == 3 and "found 1 GPU(s)" in done.stdout)
    done = launch("up", "--local", folder("local", program(10)))
    expect("up --local hides the card", done.stdout.strip()[-300:], done.returncode == 1)


@trial
def speed() -> None:
    """Steps a second by hand, under the launcher, and by hand again."""
    rates = []
    for index in range(3):
        place = folder(f"speed{index}", program(20000), **PROGRESS)
        if index == 1:
            done = launch("up", place)
            text = launch("logs", place, "worker:0").stdout
            expect("up succeeds", done.stdout.strip()[-400:], done.returncode == 0)
        else:
            text = subprocess.run(
                [sys.executable, "train.py", "20000"], cwd=str(place.parent), stdout=subprocess.PIPE, text=True
            ).stdout
        rates += [float(rate) for rate in re.findall(r"([\d.]+) steps per second", text)][-1:]
    expect("steps per second: by hand, launched, by hand", rates, len(rates) == 3)
    if len(rates) == 3:
        expect("launched / by hand", f"{rates[1] / max(rates[0], rates[2]):.4f}", rates[1] > 0.97 * min(rates[::2]))


@trial
def during_a_run() -> None:
    """Use, memory, booking, a kill, and the end of a run."""
    file = folder("during", program(ENDLESS), **PROGRESS)
    other = folder("other", program(10))
    began = time.monotonic()
    with up(file):
        task = wait(file, is_stepping)
        expect("first steps", f"{time.monotonic() - began:.1f} s, {task}", is_stepping(task))
        task = wait(file, is_busy)
        expect("use of the card", {key: task[key] for key in task if "gpu" in key}, is_busy(task))
        print(held())
        done = launch("status", file)
        expect("status", done.stdout.strip(), done.returncode == 0)
        values = re.findall(r"^launch_task_gpu.*", metrics(file), re.MULTILINE)
        expect("metrics", values, len(values) >= 2)
        done = launch("check", other)
        expect("check beside it", done.stdout.strip(), "is held by" in done.stdout)
        done = launch("up", other)
        expect("up beside it", done.stdout.strip(), done.returncode == 3 and "is held by" in done.stdout)
        pid = int(task["pid"])
        os.kill(pid, signal.SIGKILL)
        killed = time.monotonic()
        task = wait(file, lambda task: task.get("pid") not in (None, pid) and is_stepping(task))
        expect("again after a kill", f"{time.monotonic() - killed:.1f} s, step {task.get('step')}", is_stepping(task))
        expect("one process holds the card", held(), len(held().splitlines()) == 1)
        done = launch("diagnose", file, "--output", OUT / "evidence.tar.gz")
        listed = subprocess.run(["tar", "tzf", str(OUT / "evidence.tar.gz")], stdout=subprocess.PIPE, text=True).stdout
        expect("diagnose", [line for line in listed.split() if "gpus" in line or "nvidia" in line], "gpus" in listed)
        done = launch("down", file)
        expect("down", done.stdout.strip()[-400:], done.returncode == 0)
    expect("nothing holds the card", held(), held() == "")
    expect("up's last words", shown(file).strip()[-900:], True)


def is_busy(task: Dict[str, Any]) -> bool:
    """Return whether the status of a task has a use of its card above 50 %."""
    return (task.get("gpu_percent") or 0) > 50


@trial
def a_card_in_use() -> None:
    """A process of nobody's run holds memory: `check` names it, `sweep` leaves it."""
    place = folder("stranger", program(ENDLESS))
    stranger = subprocess.Popen(
        [sys.executable, "train.py", str(ENDLESS)], cwd=str(place.parent), stdout=subprocess.DEVNULL
    )
    try:
        ends = time.monotonic() + PATIENCE_S
        while not held() and time.monotonic() < ends:
            time.sleep(0.5)
        done = launch("check", folder("beside", program(10)))
        expect("check", done.stdout.strip(), done.returncode == 4 and f"pid {stranger.pid}" in done.stdout)
        done = launch("sweep", "--kill", place)
        expect("sweep --kill leaves it alone", done.stdout.strip(), stranger.poll() is None)
    finally:
        stranger.kill()
        stranger.wait()


@trial
def faults_of_a_program() -> None:
    """An address beyond its memory, and more memory than there is: the cause, and the card stays."""
    for fault in ("stray", "greedy"):
        file = folder(fault, program(1000, fault), restart={"max": 1})
        done = launch("up", file)
        expect(fault, done.stdout.strip()[-1500:], done.returncode == 1 and "cuda" in done.stdout.lower())
        expect(f"{fault}: no incident of the card", "", "Xid" not in done.stdout)
    subprocess.run(f"dmesg | grep -i xid > {OUT}/xid.txt; cat {OUT}/xid.txt", shell=True)
    expect("the card works on", launch("check", folder("after", program(10))).stdout.strip(), True)


@trial
def stand_stills() -> None:
    """A program that only waits for its card works; one that waits for nobody is quiet."""
    file = folder("busy", program(1000, "busy"), quiet_s=15)
    with up(file):
        task = wait(file, lambda task: task.get("quiet"), 45)
        expect("busy: not quiet", f"{task.get('quiet')}, gpu {task.get('gpu_percent')} %", not task.get("quiet"))
    file = folder("idle", program(1000, "idle"), quiet_s=15)
    with up(file):
        task = wait(file, lambda task: task.get("quiet"), 60)
        expect("idle: quiet", task.get("quiet"), bool(task.get("quiet")))
        expect("status", launch("status", file).stdout.strip(), True)


@trial
def limits() -> None:
    """A limit of memory counts the host's memory, not the card's or addresses."""
    file = folder("limits", program(2000), limits={"all": {"memory_gib": 12}})
    done = launch("up", file)
    expect("up", done.stdout.strip()[-600:], done.returncode == 0)


@trial
def ranks_that_are_killed() -> None:
    """DistributedDataParallel, one rank killed: all continue from one epoch, and the run succeeds."""
    ranks = {"worker": [{"host": "localhost", "count": 3, "gpus": "none"}]}
    file = folder("ddp", ["{python}", "ddp.py"], cluster=ranks, progress=r"^epoch (?P<step>\d+) loss (?P<loss>\S+)")
    with up(file) as process:
        task = wait(file, lambda task: (task.get("step") or 0) >= 8)
        second = next(task for task in status(file)["tasks"] if task["index"] == 1)
        os.kill(int(second["pid"]), signal.SIGKILL)
        killed = time.monotonic()
        wait(file, lambda found: found["pid"] not in (None, task["pid"]) and (found.get("step") or 0) >= 8)
        print(f"       training again after {time.monotonic() - killed:.1f} s")
        process.wait(PATIENCE_S)
    text = launch("logs", file).stdout
    firsts = re.findall(r"rank \d from epoch .*", text)
    expect("ranks begin together", firsts, len(firsts) == 6 and len({line.split(";")[1] for line in firsts[3:]}) == 1)
    ends = re.findall(r"rank \d ends with (\S+)", text)
    expect("ranks end with one model", ends, len(ends) == 3 and len(set(ends)) == 1)
    expect("the run succeeds", f"{process.returncode} {shown(file).strip()[-700:]}", process.returncode == 0)


def main() -> None:
    """Run all trials, and exit with 1 if an expectation failed."""
    OUT.mkdir(parents=True, exist_ok=True)
    os.chdir(str(OUT))
    only = sys.argv[2:]
    for each in TRIALS:
        if only and each.__name__ not in only:
            continue
        began = time.monotonic()
        print(f"== {each.__name__}: {each.__doc__}", flush=True)
        try:
            each()
        except Exception as error:
            expect(each.__name__, repr(error), False)
        print(f"   {time.monotonic() - began:.1f} s", flush=True)
    print("failed:", failed)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
