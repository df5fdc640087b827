"""The notice that this host will shut down soon, as reported by the command of the key ``notice``."""

import asyncio
import os
from pathlib import Path
from typing import Callable, List, Mapping, Optional

from cluster.protocol.env_values import word_with_home
from cluster.protocol.outcome import WORK
from cluster.protocol.settings import Notice
from launch.agent.linux import processes, program
from launch.agent.state.log import say_seldom
from launch.agent.state.run_folder import RunFolder
from launch.agent.text import last_words
from launch.agent.wire.run_request import RunRequest

TRY_S = 10.0  # the longest run of the command
CANNOT_RUN = (126, 127)  # exit codes of a shell that has not found a program, or may not run it


def begin(request: RunRequest, folder: RunFolder, leave: Callable[[str], None]) -> "List[asyncio.Future[None]]":
    """Start ``watch``, and return its future in a list; return an empty list if the request has no such command.

    ``leave`` is called with the reason that the notice gives.
    """
    if request.notice is None:
        return []
    work = folder.home(request.folder, request.tasks[0].name) / WORK
    return [asyncio.ensure_future(watch(request.notice, work, request.secrets, leave))]


async def watch(notice: Notice, folder: Path, secrets: Mapping[str, str], leave: Callable[[str], None]) -> None:
    """Run the command every ``notice.every_s`` seconds until it exits with 0, then call ``leave`` with the reason.

    Args:
      folder: the working folder of the command.
    """
    why = None
    while why is None:
        await asyncio.sleep(notice.every_s)
        why = await _look(notice, folder, secrets)
    leave(f"notice: {why}")


async def _look(notice: Notice, folder: Path, secrets: Mapping[str, str]) -> Optional[str]:
    """Return the reason of a notice; None without one. Log the error of a failing command now and then."""
    name, *arguments = notice.command
    try:
        argv = (os.path.expanduser(name), *map(word_with_home, arguments))
        ended = await program.run(argv, {**os.environ, **secrets}, folder, TRY_S)
    except OSError as error:
        say_seldom("notice", f"notice: {name} cannot be started: {os.strerror(error.errno or 0)}")
        return None
    line = last_words(ended.printed, secrets.values())
    if ended.code == 0:
        return line or f"{name} has ended with exit code 0"
    if ended.code is None:
        say_seldom("notice", f"notice: {name} has not ended within {TRY_S:.0f} s")
    elif ended.code < 0 or ended.code in CANNOT_RUN:
        say_seldom("notice", f"notice: {name}: {processes.describe_exit(ended.code)}{line and f'; {line}'}")
    return None
