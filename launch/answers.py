"""The fields that ``--json`` prints: the reference lists them, and tests compare them with the verbs' output.

A path reads as in jq: ``tasks[].role`` is the role of each of the tasks. Of a mapping with keys of the user's
own, such as ``env``, only the mapping is named. Times are in seconds, unless a name has another unit. The fields
of verbs that print a dataclass are described beside it.
"""

from typing import Dict

from launch.check.report import CheckReport
from launch.diagnosis.summary import DiagnoseReport
from launch.environments.builder import SetupReport
from launch.status.meanings import meanings
from launch.status.run import RunStatus
from launch.teardown.down import DownAnswer
from launch.teardown.sweep import SweepReport

Fields = Dict[str, str]

_TASK: Fields = {
    "role": "Role of the task: ps, chief, worker or evaluator.",
    "index": "Index of the task within its role, from 0.",
    "host": "Host of the task, as the hosts file names it.",
    "address": "Address of the task for the other tasks, host:port.",
}


def _below(prefix: str, fields: Fields, what: str = "") -> Fields:
    return {f"{prefix}.{path}": what + meaning for path, meaning in fields.items()}


PLAN: Fields = {
    "name": "Name of the run, without the time.",
    "lead": "Host of the lead agent: the chief's host.",
    "control": "Address of the lead agent for the other agents, host:port; null on a single host.",
    **_below("tasks[]", _TASK),
    "tasks[].gpus": "Indices of the task's GPUs; or all; or share: an equal share of the host's GPUs.",
    "tasks[].spare": "True for a ps that starts only when the host of another ps is lost.",
    "tasks[].argv": "Program and arguments of the task.",
    "tasks[].env": "Environment variables that the task has beyond its agent's; each secret is (secret).",
    "tasks[].log": "Path of the first attempt's log, on the task's host.",
    "remarks": "Further remarks, in words.",
    "placement": "The ps and their variables; null for a command.",
    "placement[].task": "Name of the ps.",
    "placement[].bytes": "Bytes of the variables on the ps.",
    "placement[].variables": "Names of the variables on the ps.",
    "variables": "Variables of the whole model; null for a command.",
    "variables.bytes": "Bytes of all variables.",
    "variables.imbalance": "Bytes on the fullest ps divided by the mean; 1.0 is even.",
    "variables.tables": "Tables of which a step moves some rows: name, rows, rows_per_step, bytes, bytes_per_step.",
    "network": "Network traffic of a step; null for a command, and where it is unknown.",
    "network.nic_gbps": "Speed of a host's network card in each direction, in Gbit/s: the value of --nic-gbps.",
    "network.seconds_per_step": "Shortest time of a step's transfers, in seconds.",
    "network.bound": "Network card that limits a step; null where no traffic leaves a host.",
    "network.bound.host": "Host of that network card.",
    "network.bound.tasks": "Tasks on that host that send or receive.",
    "network.bound.direction": "Direction of the pull: out for a ps, in for a worker; both if push and pull overlap.",
    "network.bound.bytes": "Bytes through that card in the pull, and again in the push.",
    "network.balanced.ps": "Smallest number of ps with the shortest step.",
    "network.balanced.seconds_per_step": "Shortest time of a step with that number of ps, in seconds.",
    "network.tasks[].task": "Name of a ps or worker.",
    "network.tasks[].bytes_in": "Bytes that the task receives in a pull or push.",
    "network.tasks[].bytes_out": "Bytes that the task sends in a pull or push.",
}

ANSWERS: Dict[str, Fields] = {
    "plan": PLAN,
    "check": meanings(CheckReport),
    "status": meanings(RunStatus),
    "down": meanings(DownAnswer),
    "sweep": meanings(SweepReport),
    "setup": meanings(SetupReport),
    "diagnose": meanings(DiagnoseReport),
}
