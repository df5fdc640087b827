"""The placeholders in ``command:``: every task gets its own text for ``--task_index={index}``.

A placeholder is one of the names below in braces. ``${HOME}`` is left to the shell. Braces around anything else remain
unchanged: ``{}``, ``{"a": 1}``, ``{ print }``.
"""

import re
from typing import List, Mapping

STATE_FOLDER = "state_folder"
PLACEHOLDERS = {
    "python": "Python of the task's host.",
    "role": "Role of the task: `ps`, `chief`, `worker` or `evaluator`.",
    "index": "Index of the task within its role, from 0.",
    "address": "Address of the task for the other tasks, `host:port`.",
    "port": "Port of that address.",
    "ps_hosts": "Addresses of all ps, with commas between them.",
    "worker_hosts": "Addresses of all workers except the chief.",
    "chief_hosts": "Address of the chief; empty if there is no chief.",
    "chief_address": "Address of the chief, or of worker 0 if there is no chief.",
    "num_ps": "Number of ps.",
    "num_workers": "Number of workers, not counting the chief.",
    "gpus": "Number of GPUs of the task.",
    "run": "Full name of the run, `digits-20261120-155902`.",
    "run_folder": "Folder of the run on the task's host; other hosts do not share it.",
    STATE_FOLDER: "Folder on the task's host that all runs of the same `name` share; it outlives runs.",
}
_NAMED = re.compile(r"(?<!\$)\{([A-Za-z_]\w*)\}")


def fill(word: str, values: Mapping[str, str]) -> str:
    """Return ``word`` with its placeholders replaced; a placeholder without a value in ``values`` remains."""
    if "{" not in word:
        return word  # the addresses of thousands of tasks, which were inserted earlier
    return _NAMED.sub(lambda match: values.get(match[1], match[0]), word)


def names_in(word: str) -> List[str]:
    """Return all names in braces in ``word``."""
    return _NAMED.findall(word)


def unknown(word: str) -> List[str]:
    """Return the names in braces in ``word`` that are not placeholders."""
    return [name for name in names_in(word) if name not in PLACEHOLDERS]


def nearest(name: str) -> str:
    """Return a hint for the unknown placeholder ``name``: the most similar placeholder, or all placeholders."""
    import difflib  # only for this error

    near = difflib.get_close_matches(name, PLACEHOLDERS, 1, 0.7) or [
        each for each in PLACEHOLDERS if name.endswith(each)
    ]
    known = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
    if near:
        return f"did you mean {{{near[0]}}}?"
    return f"known placeholders: {known}; to keep the braces, write {{ {name} }}"
