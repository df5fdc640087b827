"""``launch completion``, and the completion of Bash's Tab key; zsh and fish use Click's completion.

Bash splits words at colons and equals signs, which tasks and overrides contain.
"""

import os
import shlex
from pathlib import Path
from typing import Callable, Iterator, List, Tuple

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, get_completion_class

from launch.errors import SUCCEEDED

SHELLS = ("bash", "zsh", "fish")


def paths(incomplete: str, wanted: Callable[[Path], bool]) -> Iterator[str]:
    """Yield all folders, and the files for which ``wanted`` is True, whose paths begin with ``incomplete``."""
    folder, name = os.path.split(incomplete)
    try:
        found = sorted(Path(os.path.expanduser(folder or ".")).iterdir())
    except OSError:
        return
    for path in found:
        if path.name.startswith(name) and (name or not path.name.startswith(".")):
            if path.is_dir():
                yield os.path.join(folder, path.name) + "/"
            elif wanted(path):
                yield os.path.join(folder, path.name)


def _words(line: str) -> List[str]:
    """Return the words of a partly typed line, which may have an open quote."""
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


class Bash(BashComplete):
    """The completion of the line that Bash passes; words lack the part before Bash's last word break."""

    source_template = """
%(complete_func)s() {
    local IFS=$'\\n'
    COMPREPLY=($(COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" COMP_WORDBREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$1"))
    [[ ${COMPREPLY[0]} == *[=/] ]] && compopt -o nospace
    return 0
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> Tuple[List[str], str]:
        line = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])]
        words = _words(line)
        return (words[1:], "") if line[-1:].isspace() else (words[1:-1], words[-1])

    def get_completions(self, args: List[str], incomplete: str) -> List[CompletionItem]:
        breaks = [incomplete.rfind(each) for each in ":=" if each in os.environ["COMP_WORDBREAKS"]]
        kept = max(breaks, default=-1) + 1
        found: List[CompletionItem] = []
        for item in super().get_completions(args, incomplete):
            known = {"file": Path.is_file, "dir": Path.is_dir}.get(item.type)
            values = paths(item.value, known) if known else [item.value]
            found += [CompletionItem(value[kept:]) for value in values]
        return found

    def format_completion(self, item: CompletionItem) -> str:
        return str(item.value)


add_completion_class(Bash, "bash")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print a script for the shell's Tab key.

    The script completes verbs, options, hosts files, tasks and keys.

    \b
    Example:  launch completion bash >> ~/.bashrc
              launch completion zsh >> ~/.zshrc
              launch completion fish > ~/.config/fish/completions/launch.fish
    """
    script = get_completion_class(shell)
    if script is not None:
        click.echo(script(ctx.find_root().command, {}, "launch", "_LAUNCH_COMPLETE").source().strip())
    return SUCCEEDED
