"""What ``--json`` prints, field by field: the reference is made of it, and tests hold it against the verbs.

A path reads as in jq: ``tasks[].role`` is the role of each of the tasks. Of a mapping with
keys of the user's own, such as ``env``, only the mapping is named. Times are in seconds
where a name does not say otherwise.
"""

from typing import Dict

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

_AT_S = "when, in seconds since the run began"
_INCIDENT: Fields = {
    "number": "of what went wrong, which, from 1; the first and the newest are told, the last one's is the count",
    "kind": "one of those of docs/faults.md",
    "open": "whether its task has not come back yet, or training has no step newer than before",
    "at_s": _AT_S,
    "role": "of the task; null where it is of a host, or of the run",
    "index": "of the task",
    "host": "where; null where it is of the run",
    "attempt": "of the task, from 0",
    "step": "the newest global step then; null before the first",
    "cause": "what happened, in one line",
    "exit_code": "negative: the signal; null where no process ended",
    "signal": "its name, SIGKILL; null for none",
    "log": "of that attempt, on its host",
    "lines": "the last of that log",
    "stack": "of a task that was frozen; else null",
    "followed[].at_s": _AT_S,
    "followed[].kind": "what only followed from it: of this kind",
    "followed[].role": "of the task that it happened to; null where it is of a host",
    "followed[].index": "of that task",
    "followed[].host": "where",
    "followed[].attempt": "of that task, from 0",
    "followed[].exit_code": "as above",
    "followed[].cause": "as above",
    "followed[].log": "as above",
    "followed_count": "how much followed; the first and the newest of it are kept",
    "did[].at_s": _AT_S,
    "did[].what": "what was done about it, in words",
    "again_s": "seconds until the task took part in training again; null before",
    "lost_steps": "how far the global step went back; null while open, and for a command",
    "lost_seconds": "how long training stood, until there was a newer step than any before; null likewise",
}

STATUS: Fields = {
    "run": "the run, name and time of its start",
    "name": "its name",
    "state": "starting, running, succeeded, failed or stopped",
    "global_step": "the newest step that a worker has told of; null before the first",
    "steps": "the step to stop at; null for a command",
    "steps_per_second": "the chief's rate, over the last seconds",
    "examples_per_second": "of all workers",
    "loss": "of the chief's newest step; null before the first",
    "checkpoint_step": "the step of the newest checkpoint; null before the first",
    "replicas": "by host that keeps copies of checkpoints: the step of its newest; null before its first",
    "checkpoint": "the final checkpoint, a path on the chief's host; null before the end",
    "evaluation": "what the evaluator told last: the step, and each metric; null without",
    "metrics": "of the held-out data, at the end; empty before",
    "cause": "why it failed or was stopped, in one line; else null",
    "formation": "which of its hosts an elastic run trains on now; null without the key elastic",
    "formation.number": "how often the run was formed anew",
    "formation.workers": "how many workers train, the chief among them",
    "formation.of_workers": "how many the run began with",
    "formation.ps": "how many ps hold the variables",
    "formation.of_ps": "how many the run began with",
    "formation.without[]": "the hosts that are lost, or were and wait to be taken back",
    "formation.forming": "whether the processes of one formation are ending, for the next one to begin",
    "waiting_share": "the part of a step, from 0 to 1, that workers wait for the slowest; null where none waits",
    **_below("incidents[]", _INCIDENT),
    "silent": "the hosts whose agents the lead does not hear right now",
    "cause_incident": "the number of the incident that the run has failed for; null for none",
    "lost_steps": "of all incidents: how far the global step went back, in all",
    "lost_seconds": "of all incidents: how long training stood, in all",
    **_below("tasks[]", _TASK),
    "tasks[].gpus": "the indices of its GPUs",
    "tasks[].state": "starting, running, succeeded, failed, restarting, stopped or lost",
    "tasks[].doing": "what it does of its start, in words; null where that is not known, and once it runs",
    "tasks[].pid": "of its newest process; null before the first",
    "tasks[].exit_code": "of its newest process that has ended; negative: the signal; null before",
    "tasks[].restarts": "how often it was started again",
    "tasks[].step": "the newest that it has told of; null for a ps",
    "tasks[].step_time_ms": "of its steps of late, in milliseconds; null before the first",
    "tasks[].wait_ms": "of a step, its waiting for the others, in milliseconds; null where none waits",
    "tasks[].straggler": "whether it works so much longer than the other workers that they wait for it",
    "tasks[].bytes_in_per_second": "that it receives over TCP, over the last seconds; null where that is not known",
    "tasks[].bytes_out_per_second": "that it sends, likewise",
    "tasks[].gpu_percent": "of the time of late in which its GPUs computed, in the mean; null without a GPU",
    "tasks[].gpu_memory_bytes": "in use on its GPUs, in all; null without a GPU",
    "tasks[].dropped_gradients": "how many of its gradients came too late to count, with backup workers",
    "tasks[].log": "the log of its newest attempt, on its host",
    "tasks[].cause": "why it failed, in one line; else null",
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
    "status": STATUS,
    "down": DOWN,
    "sweep": SWEEP,
    "setup": SETUP,
    "diagnose": DIAGNOSE,
}
