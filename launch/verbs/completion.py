"""``launch completion``"""

import click
from click.shell_completion import get_completion_class

from launch.errors import SUCCEEDED
from launch.view.console import say

SHELLS = ("bash", "zsh", "fish")


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
        say(script(ctx.find_root().command, {}, "launch", "_LAUNCH_COMPLETE").source().strip())
    return SUCCEEDED
