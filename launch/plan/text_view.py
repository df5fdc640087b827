"""The text of ``launch plan``: short for three tasks and for thousands, since similar tasks share one line."""

import shlex
from collections import defaultdict
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

from ClusterShell.RangeSet import RangeSet
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from cluster.protocol.addresses import host_of
from cluster.protocol.quantity import quantity
from cluster.protocol.settings import Container, Keep, is_image_file
from launch.agent.wire.run_request import TaskRequest
from launch.plan.outlook import Bound, Network, Outlook, PlannedHook, PlannedTask, PsContent, Variables
from launch.plan.plan import Plan
from launch.status.task import name_of
from launch.view.console import fold, make_console, of_bytes, of_seconds

MOST_PS = 8  # up to this number, each ps has a line
_ENDS = 3  # with more ps, the number of fullest and of emptiest ps that have a line


class Alike(NamedTuple):
    """The properties that the tasks of one row share."""

    role: str
    port: int
    gpus: str
    python: str
    spare: bool


def overview(plan: Plan, outlook: Outlook, file: str) -> List[RenderableType]:
    """Return the parts of the text: the tasks, the ps, the time and bottleneck of a step, and how long runs are kept.

    Args:
      outlook: the values of ``plan --json`` without the tasks.
    """
    last = plan.tasks[-1]
    parts: List[RenderableType] = [
        Text(f"{plan.spec.name}: {quantity(len(plan.tasks), 'task')} on {fold(plan.hosts)}; lead agent on {plan.lead}"),
        Text(),
        tasks_table(plan),
        Text(),
        *([Text(container_line(plan.spec.container)), Text()] if plan.spec.container else []),
        *([*map(Text, hook_lines(outlook.hooks, plan.lead)), Text()] if outlook.hooks else []),
        Text(f"`launch plan {file} {last.name}` shows a task's command, environment and log"),
    ]
    if outlook.placement and outlook.variables:
        explained = sentences(len(outlook.placement), outlook.variables, outlook.network, plan.spec.train.mode)
        parts += [Text(), ps_table(outlook.placement, outlook.network, plan), Text(), *map(Text, explained)]
    parts.append(Text(keep_line(plan.spec.name, plan.spec.keep)))
    return [*parts, *(Text(f"note: {remark}") for remark in outlook.remarks)]


def print_overview(plan: Plan, outlook: Outlook, file: str) -> None:
    """Print the overview on stdout."""
    console = make_console()
    for part in overview(plan, outlook, file):
        console.print(part)


# -- tasks


def tasks_table(plan: Plan) -> Table:
    """Return a table with one row for all tasks that are ``Alike``."""
    alike: Dict[Alike, List[TaskRequest]] = defaultdict(list)
    for task in plan.tasks:
        alike[Alike(task.role, task.port, gpus_text(task.gpus), plan.task_python(task.host), task.spare)].append(task)
    table = _table("tasks", "hosts", "addresses", "gpus", "python")
    for row, tasks in alike.items():
        indices = _fold_numbers([task.index for task in tasks])
        name = f"{row.role}:{indices}" + (" (spare)" if row.spare else "")
        cells = name, fold(task.host for task in tasks), _addresses(tasks), row.gpus, row.python
        table.add_row(*map(Text, cells))
    return table


def gpus_text(gpus: Any) -> str:
    """Return a task's GPUs in words: ``0,1`` or ``none``; the values ``all`` and ``share`` stay unchanged."""
    return gpus if isinstance(gpus, str) else ",".join(map(str, gpus)) or "none"


def _fold_numbers(numbers: Sequence[int]) -> str:
    folded = str(RangeSet.fromlist(map(str, numbers), autostep=3))
    return folded if len(numbers) == 1 else f"[{folded}]"


def _addresses(tasks: Sequence[TaskRequest]) -> str:
    """Return ``gpu[01-04]:2222``; all tasks have the same port."""
    names = fold(dict.fromkeys(host_of(task.address) for task in tasks))
    return f"[{names}]:{tasks[0].port}" if ":" in names else f"{names}:{tasks[0].port}"


def whole_task(task: PlannedTask) -> Iterator[str]:
    """Yield lines with all values of one task: the command is quoted for a shell, and the environment comes last."""
    yield f"{name_of(task.role, task.index)} on {task.host}"
    yield f"  address  {task.address}"
    yield f"  gpus     {gpus_text(task.gpus)}"
    if task.limits:
        yield f"  limits   {', '.join(f'{key} {value:.10g}' for key, value in task.limits.items())}"
    yield f"  log      {task.log}"
    yield f"  command  {' '.join(map(shlex.quote, task.argv))}"
    for number, (key, value) in enumerate(sorted(task.env.items())):
        yield f"  {'env' if number == 0 else '':7}  {key}={shlex.quote(value)}"


def container_line(container: Container) -> str:
    """Return a line about the container: ``each task runs in the image /x/tf.sif with apptainer``."""
    chosen = "apptainer" if is_image_file(container.image) else "podman or docker, whichever has the image"
    return f"each task runs in the image {container.image} with {container.runtime or chosen}"


def keep_line(name: str, rule: Keep) -> str:
    """Return a sentence with the rule by which hosts remove past runs with the name ``name``."""
    if rule.spares_results:
        return (
            f"keep: hosts remove past runs of {name} that left nothing but logs and records, "
            f"{rule.days:g} days after their last use"
        )
    bounds = [
        (rule.runs, "beyond the newest {}"),
        (rule.days, "{:g} days after their last use"),
        (rule.gib, "beyond {:g} GiB"),
    ]
    given = [words.format(bound) for bound, words in bounds if bound is not None]
    if not given:
        return f"keep: hosts remove no past run of {name}"
    return f"keep: hosts remove past runs of {name} {', or '.join(given)}"


def hook_lines(hooks: Sequence[PlannedHook], lead: str) -> List[str]:
    """Return a line for each receiver of events: ``on failed, stopped: POST {CHAT_URL} from gpu01``."""
    events: Dict[str, List[str]] = defaultdict(list)
    for hook in hooks:
        way = (
            f"POST {hook.url} from {lead}"
            if hook.command is None
            else f"{' '.join(map(shlex.quote, hook.command))} on {lead}"
        )
        events[way].append(hook.event)
    return [f"on {', '.join(names)}: {way}" for way, names in events.items()]


# -- variables


def ps_table(placement: Sequence[PsContent], network: Optional[Network], plan: Plan) -> Table:
    """Return a table with a row for each ps; with many ps, only for the fullest and the emptiest ps."""
    hosts = {task.name: task.host for task in plan.tasks}
    moved = {task.task: task.bytes_out for task in network.tasks} if network else {}
    table = _table("ps", "host", "holds", "of the mean", "variables", "out and in a step", numbers_from=2)
    mean = sum(ps.bytes for ps in placement) / len(placement)
    for ps in _extremes(placement):
        if ps is None:
            table.add_row(f"… {len(placement) - 2 * _ENDS} more")
            continue
        share = f"{ps.bytes / mean:.2f}" if mean else "-"
        step = of_bytes(moved[ps.task]) if moved else "-"
        cells = ps.task, hosts[ps.task], of_bytes(ps.bytes), share, str(len(ps.variables)), step
        table.add_row(*map(Text, cells))
    return table


def _extremes(placement: Sequence[PsContent]) -> List[Optional[PsContent]]:
    """Return all ps; of more than ``MOST_PS``, the fullest, None for the others, and the emptiest."""
    if len(placement) <= MOST_PS:
        return list(placement)
    by_size = sorted(placement, key=lambda ps: -ps.bytes)
    return [*by_size[:_ENDS], None, *by_size[-_ENDS:]]


def sentences(number: int, variables: Variables, network: Optional[Network], mode: str) -> Iterator[str]:
    """Yield sentences that explain the numbers.

    The sentences state the size of the fullest ps, the bottleneck of a step, and the number of ps that removes it.
    """
    yield (
        f"variables: {of_bytes(variables.bytes)} including the optimizer's, on {number} ps; "
        f"the fullest ps holds {variables.imbalance:.2f} times the mean"
    )
    for table in variables.tables:
        size = "a row for each id" if table["rows"] is None else f"{table['rows']:,} rows, {of_bytes(table['bytes'])}"
        yield (
            f"table {table['name']}: {size}; a worker reads "
            f"at most {table['rows_per_step']:,} rows per step, {of_bytes(table['bytes_per_step'])}"
        )
    if network is not None:
        yield f"network: {_step(network, mode)}"
        if network.bound:
            yield f"balance: {_balance(network)}"


def _step(network: Network, mode: str) -> str:
    bound = network.bound
    if bound is None:
        return "nothing leaves the host"
    what = "a step of every worker" if mode == "async" else "a step"
    return (
        f"{what} takes at least {of_seconds(network.seconds_per_step)} at {network.nic_gbps:g} Gbit/s, "
        f"limited by {bound.host}'s network card: {_there_and_back(bound)}"
    )


def _there_and_back(bound: Bound) -> str:
    """Return ``80 MB out, then 80 MB in, for ps:0``, or with both at the same time."""
    first, then = ("in", "out") if bound.direction == "in" else ("out", "in")
    tasks = bound.tasks if len(bound.tasks) < 4 else [*bound.tasks[:2], f"{len(bound.tasks) - 2} more"]
    size = of_bytes(bound.bytes)
    at_once = bound.direction == "both"
    moved = f"{size} {first} and {size} {then} at the same time" if at_once else f"{size} {first}, then {size} {then}"
    return f"{moved}, for {', '.join(tasks)}"


def _balance(network: Network) -> str:
    best = network.balanced
    if best.seconds_per_step >= 0.98 * network.seconds_per_step:
        return "more ps, or more hosts for them, do not shorten a step"
    where = "a host of its own" if best.ps == 1 else "hosts of their own"
    return f"with {best.ps} ps on {where}, a step takes {of_seconds(best.seconds_per_step)}; more ps do not shorten it"


def _table(*headings: str, numbers_from: int = 99) -> Table:
    table = Table(box=None, pad_edge=False)
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index >= numbers_from else "left")
    return table
