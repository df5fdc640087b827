"""A program that was not written for this launcher shows its steps, and what a restart of it has lost."""

import json
import re
from typing import Any, Dict

import pytest

from tests.support.launch.launcher import Launcher, finish
from tests.support.waiting import eventually

# Two steps a second; worker:1 is killed at step 4 and continues from step 2, as from a checkpoint.
TRAINS = """
test {role} = ps && exec sleep 1000
step=0 last=9; test $LAUNCH_ATTEMPT = 1 && step=2 last=12
while test $step -lt $last; do
  sleep 0.5; step=$((step + 1))
  %s
  test {role}:{index}:$LAUNCH_ATTEMPT:$step = worker:1:0:4 && kill -9 $$
done
true
"""
PRINTS = 'echo "I train.py] step $step of $last, loss 0.$step at 80.5 examples/s"'
EXPRESSION = r"step (?P<step>\d+) .*loss (?P<loss>\S+) at (?P<rate>\S+) examples/s"
WRITES = r'printf "{\"step\": $step, \"loss\": 0.$step, \"rate\": 80.5}\n" >> $LAUNCH_PROGRESS'


@pytest.mark.parametrize(("line", "keys"), [(PRINTS, {"progress": EXPRESSION}), (WRITES, {})])
def test_a_killed_program_trains_again_and_its_steps_are_shown(
    launch: Launcher, line: str, keys: Dict[str, Any]
) -> None:
    launch.write(TRAINS % line, restart={"backoff_s": 0.5}, **keys)
    ran = launch("up")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    again = r"killed by SIGKILL.* at step \d, training again after [\d.]+ s, \d steps? lost"
    for shown in (r"step \d+, loss 0\.\d", again):
        assert re.search(shown, ran.stdout), ran.stdout
    status = json.loads(launch("status", "--json").stdout)
    assert (status["global_step"], status["loss"], status["steps"]) == (12, 0.9, None)
    assert [task["step"] for task in status["tasks"]] == [None, 9, 12]
    curve = status["history"]
    assert curve["step"] == sorted(set(curve["step"])) and curve["step"][-1] == 9 == 10 * curve["loss"][-1]
    assert not status["incidents"][0]["open"] and status["lost_steps"] == 2


def test_the_rates_of_a_program_are_in_the_status_while_it_trains(launch: Launcher) -> None:
    launch.write(TRAINS.replace("last=9", "last=99") % PRINTS, progress=EXPRESSION)
    up = launch.begin("up")
    status = eventually("rates", lambda: _with_rates(launch), 30)
    assert launch("down").returncode == 0 and finish(up).returncode == 1
    assert status["examples_per_second"] == 161.0


def _with_rates(launch: Launcher) -> Dict[str, Any]:
    status = launch.status()
    return status if status and status["examples_per_second"] > 100 else {}
