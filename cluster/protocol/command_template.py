"""The words of ``command:``, in which ``--task_index={index}`` becomes a different text for every task.

A placeholder is one of the names below in braces. ``${HOME}`` belongs to the shell. Braces around anything else remain
unchanged: ``{}``, ``{"a": 1}``, ``{ print }``.
"""

import difflib
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
    "worker_hosts": "Addresses of all workers, without a chief.",
    "chief_hosts": "Address of the chief; empty without a chief.",
    "chief_address": "Address of the chief, or of worker 0 without a chief.",
    "num_ps": "Number of ps.",
    "num_workers": "Number of workers, without a chief.",
    "gpus": "Number of GPUs of the task.",
    "run": "Full name of the run, `digits-20261120-155902`.",
    "run_folder": "Folder of the run on the task's host; other hosts do not share it.",
    STATE_FOLDER: "Folder of the key `name` on the task's host, which outlives runs.",
}
_NAMED = re.compile(r"(?<!\$)\{([A-Za-z_]\w*)\}")


def fill(word: str, values: Mapping[str, str]) -> str:
    """Return ``word`` with its placeholders replaced; a placeholder without a value in ``values`` remains."""
    if "{" not in word:
        return word  # the addresses of thousands of tasks, which were inserted earlier
    return _NAMED.sub(lambda match: values.get(match[1], match[0]), word)


def names_in(word: str) -> List[str]:
    """Return the names that stand in braces in ``word``."""
    return _NAMED.findall(word)


def unknown(word: str) -> List[str]:
    """Return the names in braces in ``word`` that are not placeholders."""
    return [name for name in names_in(word) if name not in PLACEHOLDERS]


def nearest(name: str) -> str:
    """Return a hint for ``name``, which is no placeholder: the nearest placeholder, or all placeholders."""
    near = difflib.get_close_matches(name, PLACEHOLDERS, 1, 0.7) or [
        each for each in PLACEHOLDERS if name.endswith(each)
    ]
    known = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
    if near:
        return f"did you mean {{{near[0]}}}?"
    return f"known placeholders: {known}; write other braces as {{ {name} }}"
