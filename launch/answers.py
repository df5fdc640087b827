"""The fields that ``--json`` prints: the reference lists them, and tests compare them with the verbs' output.

A path reads as in jq: ``tasks[].role`` is the role of each of the tasks. Of a mapping with keys of the user's
own, such as ``env``, only the mapping is named. Times are in seconds, unless a name has another unit. The fields
of ``launch status --json`` are described beside its dataclasses, in ``launch.status``.
"""

from typing import Dict

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

_FOUND: Fields = {
    "kind": "Subject in one word; docs/check.md lists the values.",
    "hosts[]": "Name of an affected host.",
    "what": "Fact in words: expected and found.",
    "mend": "Next step in words, with its command in backticks.",
}

CHECK: Fields = {
    "ok": "True without a finding.",
    **_below("findings[]", _FOUND, "Finding: "),
    **_below("notes[]", _FOUND, "Note: "),
    "hosts[].host": "Name of a host of the file.",
    "hosts[].ok": "True if no finding is about the host.",
    "hosts[].answered": "True if the host took part to the end; else the fields below are null.",
    "hosts[].python": "Version of the tasks' Python; null where it did not start.",
    "hosts[].tensorflow": "Version of TensorFlow that this Python imports; null without TensorFlow.",
    "hosts[].numpy": "Version of numpy that this Python imports; null without numpy.",
    "hosts[].driver": "Version of the NVIDIA driver; null without a driver.",
    "hosts[].gpus[].uuid": "UUID of a GPU, in the order of the indices.",
    "hosts[].gpus[].name": "Model of the GPU.",
    "hosts[].gpus[].booked": "Full name of the run that booked the GPU; null without a booking.",
    "hosts[].gpus[].processes[]": "Process that uses the GPU, with its memory.",
    "hosts[].clock.offset_s": "Seconds that the host's clock is ahead of the launcher's; negative: behind.",
    "hosts[].clock.error_s": "Largest error of offset_s, in seconds.",
    "hosts[].folders": "For each path: free_bytes, or the error that prevents writing.",
    "hosts[].run": "Full name of the live run of this name; null without one.",
    "hosts[].addresses": "For each host name: its addresses as this host resolves them, or the error.",
}

DIAGNOSE: Fields = {
    "run": "Full name of the newest run that a host reports; null where no run of this name has been.",
    "archive": "Path of the archive.",
    "bytes": "Size of the archive in bytes.",
    "hosts[].host": "Name of a host of the file.",
    "hosts[].error": "Problem that kept the host from a complete answer; else null.",
    "hosts[].run": "Full name of the host's newest run of this name; null without one.",
    "hosts[].files": "Names of the host's files in the archive.",
    "hosts[].missing[].section": "Section that is missing.",
    "hosts[].missing[].why": "Reason why it is missing.",
    "hosts[].looks_wrong": "Symptoms of the host, one line each.",
}

ANSWERS: Dict[str, Fields] = {
    "plan": PLAN,
    "check": CHECK,
    "status": meanings(RunStatus),
    "down": meanings(DownAnswer),
    "sweep": meanings(SweepReport),
    "setup": meanings(SetupReport),
    "diagnose": DIAGNOSE,
}
