"""Find flags of ``command`` whose path is a separate folder on each host: a restart finds no complete checkpoint there.

TensorFlow writes a variable on its ps's host, and the list of a checkpoint on the chief's host. With several hosts, a
checkpoint is complete only in a folder that these hosts share. Without a ps, often only the first worker writes, and
the workers on other hosts find nothing. The launcher knows a folder only from the words of ``command``: a
program's own default folder stays unknown.
"""

import re
from typing import Iterator, List, NamedTuple, Sequence, Tuple

from cluster.protocol.command_template import STATE_FOLDER
from cluster.spec.model import Spec
from cluster.task import TRAINERS

_FLAG = re.compile(r"--?([A-Za-z][\w-]*)(?:=(.*))?")
_FOLDER = re.compile(
    r"(?:.*_)?(?:train|model|log|ckpt|checkpoints?|save|output|summary|summaries)_?(?:dir|directory|folder|path)"
)
_OF_LOGS = re.compile(r"(?:.*_)?(?:log|summary|summaries)_?[a-z]+")  # from which no program without ps restores
_ELSEWHERE = re.compile(r"[/~$]|[\w+.-]+://")  # how a folder of the user's own choice begins
_OF_A_HOST = re.compile(rf"\{{(?:run_folder|{STATE_FOLDER})\}}")


class SplitFolder(NamedTuple):
    """A flag of ``command`` whose path is a separate folder on each host.

    Attributes:
      hosts: the hosts of the chief and of the ps, which write to that path; without a ps, the hosts of all workers.
      what: the problem, in words.
      mend: the remedy, in words.
    """

    hosts: Tuple[str, ...]
    what: str
    mend: str


def split_folders(spec: Spec) -> List[SplitFolder]:
    """Return the flags whose path splits a checkpoint over hosts, or hides a checkpoint from workers of other hosts.

    The list is empty if every ps (without a ps, every worker) is on the chief's host.
    """
    if spec.command is None:
        return []
    servers = spec.tasks_of("ps")
    others = servers or [task for role in TRAINERS for task in spec.tasks_of(role)]
    hosts = tuple(dict.fromkeys([spec.chief.host, *(task.host for task in others)]))
    if len(hosts) == 1:
        return []
    found = dict.fromkeys(_flags(spec.command_of(spec.chief.role)))
    words = [(word, value) for word, value in found if not _ELSEWHERE.match(value)]
    if servers:
        return [_with_ps(word, value, hosts) for word, value in words]
    return [_without_ps(word, value, hosts) for word, value in words if not _OF_LOGS.fullmatch(_name(word))]


def _flags(words: Sequence[str]) -> Iterator[Tuple[str, str]]:
    """Yield each flag for a folder of checkpoints, as written, with its value."""
    for word, following in zip(words, [*words[1:], ""]):
        flag = _FLAG.fullmatch(word)
        if flag is None or not _FOLDER.fullmatch(_name(word)):
            continue
        if flag[2]:
            yield word, flag[2]
        elif flag[2] is None and following and not following.startswith("-"):
            yield f"{word} {following}", following


def _name(word: str) -> str:
    """Return the name of the flag that a word begins with, ``train_dir`` for ``--train-dir=x``; "" without one."""
    flag = _FLAG.match(word)
    return flag[1].lower().replace("-", "_") if flag else ""


def _with_ps(word: str, value: str, hosts: Tuple[str, ...]) -> SplitFolder:
    what = f"{word} is a different folder on each host, and a checkpoint is split over the hosts of chief and ps"
    mend = f"name a folder that these hosts share, or run every ps on {hosts[0]}"
    return SplitFolder(hosts, what, f"{mend}: otherwise a save fails, or a restart cannot read it{_shared(value)}")


def _without_ps(word: str, value: str, hosts: Tuple[str, ...]) -> SplitFolder:
    what = f"{word} is a different folder on each host, and after a restart the workers find different checkpoints"
    mend = "name a folder that these hosts share, unless every worker saves, or one worker restores for all workers"
    return SplitFolder(hosts, what, f"{mend}{_shared(value)}")


def _shared(value: str) -> str:
    return "; or put workdir on a disk that they share" if _OF_A_HOST.match(value) else ""
