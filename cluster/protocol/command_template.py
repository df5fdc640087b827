"""The words of ``command:``, in which ``--task_index={index}`` is another text for every task.

A placeholder is one of the names below in braces. ``${HOME}`` is the shell's own, and braces around
anything that is no name stay as they are: ``{}``, ``{"a": 1}``, ``{ print }``.
"""

import difflib
import re
from typing import List, Mapping

PLACEHOLDERS = {
    "python": "the Python of the task's host",
    "role": "`ps`, `chief`, `worker` or `evaluator`",
    "index": "the task's number among those of its role, from 0",
    "address": "where the other tasks connect to this one, `host:port`",
    "port": "its port",
    "ps_hosts": "the addresses of every ps, with commas between them",
    "worker_hosts": "those of every worker",
    "chief_hosts": "that of the chief, where one is named",
    "chief_address": "the address of the chief, or of worker 0 where no chief is named",
    "num_ps": "how many ps there are",
    "num_workers": "how many workers; a chief is not among them",
    "gpus": "how many GPUs the task has",
    "run": "the run's name, `digits-20261120-155902`",
    "run_folder": "the run's folder on the task's host, which no other host shares",
}
_NAMED = re.compile(r"(?<!\$)\{([A-Za-z_]\w*)\}")


def fill(word: str, values: Mapping[str, str]) -> str:
    """``word`` with its placeholders replaced; those that ``values`` does not have stay."""
    if "{" not in word:
        return word  # the addresses of thousands of tasks, filled in before
    return _NAMED.sub(lambda match: values.get(match[1], match[0]), word)


def unknown(word: str) -> List[str]:
    """Names in braces that are no placeholder."""
    return [name for name in _NAMED.findall(word) if name not in PLACEHOLDERS]


def nearest(name: str) -> str:
    """Return a hint for an unknown name: the nearest placeholder, or all of them."""
    near = difflib.get_close_matches(name, PLACEHOLDERS, 1, 0.7) or [
        each for each in PLACEHOLDERS if name.endswith(each)
    ]
    known = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
    if near:
        return f"did you mean {{{near[0]}}}?"
    return f"known placeholders: {known}; write other braces as {{ {name} }}"
