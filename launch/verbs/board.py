"""``launch board``"""

import click

from launch.errors import SUCCEEDED
from launch.history import locate
from launch.monitoring.tensorboard import Board, Tunnel, must_answer
from launch.target import Target
from launch.verbs.options import OF_RUN, port_option, with_hosts_file
from launch.view.console import say


@click.command()
@with_hosts_file
@OF_RUN
@port_option()
def board(target: Target, port: int) -> int:
    """Open TensorBoard on the newest run's summaries, until Ctrl-C.

    TensorBoard runs on the chief's host, beside the summaries, and ends with this command.
    The page reaches this machine through the launcher's own connection to the host.

    \b
    Example:  launch board hosts.yaml --port 6006
    """
    with target.reach() as fleet:
        locate(fleet)
        with Board(fleet) as shown:
            shown.dial().close()
            with Tunnel(shown.dial, port) as tunnel:
                must_answer(tunnel.port)
                say(f"{shown.run}: http://127.0.0.1:{tunnel.port}/ (Ctrl-C ends it)")
                shown.stay()
        return fleet.interrupts.exit_code(otherwise=SUCCEEDED)
