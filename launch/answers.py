"""The fields that ``--json`` prints: the reference lists them, and tests compare them with the verbs' output.

A path reads as in jq: ``tasks[].role`` is the role of each of the tasks. Of a mapping with keys of the user's
own, such as ``env``, only the mapping is named. Times are in seconds, unless a name has another unit. The fields
of ``launch status --json`` are described beside its dataclasses, in ``launch.status``.
"""

from typing import Dict

from launch.status.meanings import meanings
from launch.status.run import RunStatus

Fields = Dict[str, str]

_TASK: Fields = {
    "role": "ps, chief, worker or evaluator",
    "index": "which of its role, from 0",
    "host": "where it runs, as the hosts file calls it",
    "address": "where the other tasks connect, host:port",
}
_LEFT: Fields = {
    "processes[].pid": "a process",
    "processes[].group": "its process group, which is the pid of the group's leader",
    "processes[].start": "when it began, in clock ticks since the host booted: with the pid, that and no other",
    "processes[].argv": "what it was started as",
    "processes[].waits_in": "where in the kernel it hangs, if it cannot be ended; else null",
    "ports[]": "a TCP port that the run's processes listen on",
    "gpu_memory[].gpu": "the index of a GPU",
    "gpu_memory[].pid": "who holds memory of it",
    "gpu_memory[].mib": "how much, in MiB; null where the driver does not tell",
    "locks[]": "the path of a lock or socket of the run",
}


def _below(prefix: str, fields: Fields, what: str = "") -> Fields:
    return {f"{prefix}.{path}": what + meaning for path, meaning in fields.items()}


def _of_runs(prefix: str, what: str) -> Fields:
    return {
        f"{prefix}.run": f"{what}: of this run; null for what no run has",
        **_below(prefix, _LEFT, f"{what}: "),
        f"{prefix}.folders[]": f"{what}: a folder that was not finished",
    }


PLAN: Fields = {
    "name": "the run's name, without its time",
    "lead": "the chief's host, whose agent supervises the run",
    "control": "where the other hosts' agents connect to it, host:port; null on a single host",
    **_below("tasks[]", _TASK),
    "tasks[].gpus": "the indices of its GPUs; or all, or share: the host's GPUs among its tasks that said nothing",
    "tasks[].spare": "whether it is a ps that starts only when another's host is lost",
    "tasks[].argv": "its program and arguments",
    "tasks[].env": "its environment beyond the agent's own; secrets are shown as (secret)",
    "tasks[].log": "the log of its first attempt, on its host",
    "remarks": "what else to know, in words",
    "placement": "null for a command",
    "placement[].task": "a ps",
    "placement[].bytes": "of the variables that it holds",
    "placement[].variables": "their names",
    "variables": "of the whole model; null for a command",
    "variables.bytes": "of all variables",
    "variables.imbalance": "the fullest ps's bytes over the mean: 1.0 is even",
    "variables.tables": "the tables of which a step moves only rows: name, rows, rows_per_step, bytes, bytes_per_step",
    "network": "of a step; null for a command, and where it is not known",
    "network.nic_gbps": "the speed of a host's network card, in both directions, as given with --nic-gbps",
    "network.seconds_per_step": "the least time that a step's transfers take",
    "network.bound": "the network card that a step waits for; null where nothing leaves a host",
    "network.bound.host": "whose it is",
    "network.bound.tasks": "the tasks there that send or receive",
    "network.bound.direction": "of the pull: out for a ps, in for a worker; the push goes the other way",
    "network.bound.bytes": "what passes through it in the pull, and again in the push",
    "network.balanced.ps": "how few ps would make no step shorter than more would",
    "network.balanced.seconds_per_step": "the least time of a step with them",
    "network.tasks[].task": "a ps or a worker",
    "network.tasks[].bytes_in": "what reaches it in a pull or a push",
    "network.tasks[].bytes_out": "what leaves it in a pull or a push",
}

_HOST: Fields = {
    "hosts[].host": "a host of the file",
    "hosts[].error": "why it could not be asked; then it has no other field; else null",
}

DOWN: Fields = {
    "clean": "whether every host has answered and nothing is left",
    **_HOST,
    "hosts[].run": "the run that was ended; null where none of this name has been",
    **_below("hosts[].ended", _LEFT, "gone: "),
    **_below("hosts[]", _LEFT, "left: "),
}

SWEEP: Fields = {
    "clean": "whether every host has answered and nothing of an earlier run is left",
    **_HOST,
    "hosts[].running[].run": "a run that lives there; it is left alone",
    "hosts[].running[].pid": "its agent",
    **_of_runs("hosts[].found[]", "found"),
    **_of_runs("hosts[].ended[]", "gone"),
    **_of_runs("hosts[].left[]", "left"),
}

SETUP: Fields = {
    "ready": "whether every host has its environment",
    "hosts[].host": "a host of the file",
    "hosts[].environment": "the environment that its tasks run in, by the hash of what it is built from",
    "hosts[].state": "built, up to date or failed",
    "hosts[].error": "why not; else null",
}

_FOUND: Fields = {
    "kind": "what it is about, in one word: see docs/check.md",
    "hosts[]": "where it is so",
    "what": "what was expected and found, in words",
    "mend": "what to do, with the command in backticks where there is one",
}

CHECK: Fields = {
    "ok": "whether nothing is wrong",
    **_below("findings[]", _FOUND, "what is wrong: "),
    **_below("notes[]", _FOUND, "what is only to be known: "),
    "hosts[].host": "a host of the file",
    "hosts[].ok": "whether no finding is about it",
    "hosts[].answered": "whether it took part to the end; else the fields below are null",
    "hosts[].python": "the version of its tasks' Python; null where it did not start",
    "hosts[].tensorflow": "the version that this Python imports; null without",
    "hosts[].numpy": "the version that this Python imports; null without",
    "hosts[].driver": "the version of the NVIDIA driver; null without",
    "hosts[].gpus[].uuid": "of a GPU, in the order of their indices",
    "hosts[].gpus[].name": "its model",
    "hosts[].gpus[].booked": "by which run; null where none has",
    "hosts[].gpus[].processes[]": "a process that uses it, with its memory",
    "hosts[].clock.offset_s": "how far its clock is ahead of the launcher's",
    "hosts[].clock.error_s": "how far that may be wrong",
    "hosts[].folders": "by path: free_bytes, or the error that keeps it from being written",
    "hosts[].run": "the run of this name that is up there; null without",
    "hosts[].addresses": "by name: the addresses that it has there, or why it has none",
}

DIAGNOSE: Fields = {
    "run": "the newest run that a host tells of; null where none of this name has been",
    "archive": "the path of what was written",
    "bytes": "its size",
    "hosts[].host": "a host of the file",
    "hosts[].error": "why it told nothing, or not all; else null",
    "hosts[].run": "its newest run of this name; null without",
    "hosts[].files": "what of it is in the archive",
    "hosts[].missing[].section": "what could not be looked at there",
    "hosts[].missing[].why": "why not",
    "hosts[].looks_wrong": "what looks wrong there, each in one line",
}

ANSWERS: Dict[str, Fields] = {
    "plan": PLAN,
    "check": CHECK,
    "status": meanings(RunStatus),
    "down": DOWN,
    "sweep": SWEEP,
    "setup": SETUP,
    "diagnose": DIAGNOSE,
}
