"""Flags of a ``command`` that name another folder on each host, where a ps writes a part of each checkpoint.

TensorFlow writes a variable on the ps that holds it, and the list of a checkpoint on the chief. Over several hosts a
checkpoint is whole only in a folder that these hosts share. The launcher knows a folder only from the words of
``command``: a program's own default stays unknown.
"""

import re
from typing import Iterator, List, NamedTuple, Sequence, Tuple

from cluster.protocol.command_template import STATE_FOLDER
from cluster.spec.model import Spec

_FLAG = re.compile(r"--?([A-Za-z][\w-]*)(?:=(.*))?")
_FOLDER = re.compile(
    r"(?:.*_)?(?:train|model|log|ckpt|checkpoints?|save|output|summary|summaries)_?(?:dir|directory|folder|path)"
)
_ELSEWHERE = re.compile(r"[/~$]|[\w+.-]+://")  # how a folder of the user's own choice begins
_OF_A_HOST = re.compile(rf"\{{(?:run_folder|{STATE_FOLDER})\}}")


class SplitFolder(NamedTuple):
    """A flag whose folder is another one on each host.

    Attributes:
      hosts: the hosts of the chief and of the ps, which write there.
      what: the fact in words.
      mend: the next step in words.
    """

    hosts: Tuple[str, ...]
    what: str
    mend: str


def split_folders(spec: Spec) -> List[SplitFolder]:
    """Return the flags that split a checkpoint over hosts; none where every ps is on the chief's host."""
    if spec.command is None:
        return []
    hosts = tuple(dict.fromkeys([spec.chief.host, *(task.host for task in spec.tasks_of("ps"))]))
    if len(hosts) == 1:
        return []
    words = dict.fromkeys(_flags(spec.command_of(spec.chief.role)))
    return [_described(word, value, hosts) for word, value in words if not _ELSEWHERE.match(value)]


def _flags(words: Sequence[str]) -> Iterator[Tuple[str, str]]:
    """Yield each flag for a folder of checkpoints, as written, with its value."""
    for word, following in zip(words, [*words[1:], ""]):
        flag = _FLAG.fullmatch(word)
        if flag is None or not _FOLDER.fullmatch(flag[1].lower().replace("-", "_")):
            continue
        if flag[2]:
            yield word, flag[2]
        elif flag[2] is None and following and not following.startswith("-"):
            yield f"{word} {following}", following


def _described(word: str, value: str, hosts: Tuple[str, ...]) -> SplitFolder:
    what = f"{word} is another folder on each host, and a checkpoint is split over the hosts of the chief and of the ps"
    mend = "name a folder that these hosts share: otherwise a save fails, or no restart can read it"
    shared = "; workdir on a disk that they share also serves" if _OF_A_HOST.match(value) else ""
    return SplitFolder(hosts, what, mend + shared)
