"""``launch prune``"""

import shlex

import click

from launch.errors import FOUND_WRONG, SUCCEEDED, CannotStart
from launch.target import Target
from launch.teardown import prune as teardown
from launch.verbs.options import JSON, tell, with_hosts_file


@click.command()
@with_hosts_file
@JSON
@click.option("--yes", "remove", is_flag=True, help="Remove what goes; without it, the command only shows it.")
def prune(target: Target, as_json: bool, remove: bool) -> int:
    """Show past runs and code that are beyond the bounds of FILE.

    The key keep has the bounds for runs of FILE's name; runs of other names have those that their newest began
    with. Runs that live, that another needs, and the newest of a name always stay. Hosts also apply the bounds
    by themselves, whenever a run starts.

    \b
    Example:  launch prune hosts.yaml
              launch prune hosts.yaml --yes
    """
    with target.reach_hosts() as fleet:
        found = teardown.prune(fleet, remove)
    words = " ".join([*(f"--set {shlex.quote(each)}" for each in target.overrides), str(target)])
    advice = [] if remove or found.is_empty else [f"remove them with `launch prune {words} --yes`"]
    tell(as_json, teardown.as_values(found, remove), [*teardown.in_lines(found, remove), *advice])
    if found.problems:
        raise CannotStart(found.problems)
    return FOUND_WRONG if found.has_failed else SUCCEEDED
