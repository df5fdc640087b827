"""The rules for several sections of a hosts file together, which the JSON Schema does not state."""

from typing import Any, Dict, Iterator, List, Optional, Sequence

from cluster.errors import Problem
from cluster.protocol import addresses
from cluster.protocol.command_template import nearest, unknown
from cluster.spec.entries import MASTER, Entry
from cluster.spec.env_rules import env_paths, env_rules
from cluster.spec.model import ROLE_ORDER, is_local
from cluster.spec.place import Path
from cluster.spec.schema import Findings
from cluster.spec.section_rules import container_rules, elastic_rules, hook_rules, progress_rules, success_rules
from cluster.spec.task_slots import machine_of
from cluster.spec.yaml_document import Document
from cluster.task import TRAINERS, UNFIT_FOR_STOCK, Checkpoint, Train


def broken_rules(document: Document, findings: Findings, entries: Sequence[Entry], all_read: bool) -> Iterator[Problem]:
    """Yield a problem for every rule that several values break together, although each is valid by itself.

    Args:
      findings: the problems of the schema; rules for values that have such problems are left out.
      entries: the readable entries.
      all_read: whether every entry is readable; otherwise, rules that need the number of workers are left out.
    """
    if findings.fit("job") and findings.fit("command"):
        yield from _job_or_command(document)
    if findings.fit("command"):
        yield from _unknown_placeholders(document)
        yield from _without_effect(document)
        yield from _roles_without_command(document, entries)
    yield from _secrets(document, findings, entries)
    yield from hook_rules(document, findings)
    yield from progress_rules(document, findings)
    if document.value.get("container") is not None and findings.fit("container"):
        yield from container_rules(document)
    if isinstance(document.value.get("cluster"), dict):
        yield from _missing_roles(document)
    yield from _crowded_roles(document, entries)
    yield from _lonely_addresses(entries)
    if not addresses.may_be_public(document.value.get("guard"), document.value.get("allow_public")):
        yield from _public_addresses(entries)
    # Unreadable entries may name workers, too.
    workers = _size(entries, *TRAINERS) if findings.fit("cluster") and all_read else None
    yield from elastic_rules(document, findings, workers)
    yield from success_rules(document, findings, None if workers is None else _size(entries, "worker"))
    if document.value.get("command") is None and findings.fit("train", "checkpoint", "replicas"):
        yield from _replicas(document, entries if findings.fit("cluster") and all_read else None)
    if findings.fit("train", "mode") and findings.fit("train", "sync"):
        yield from _sync(document, findings)
    if findings.fit("train", "mode") and findings.fit("train", "backup_workers"):
        yield from _backup_workers(document, workers)
        if findings.fit("train", "replication"):
            yield from _in_graph(document)
    if findings.fit("train", "mode") and findings.fit("train", "local_steps"):
        yield from _local_steps(document)
    if findings.fit("train", "table_staleness"):
        yield from _table_staleness(document)
    if findings.fit("train", "checkpoint"):
        yield from _deltas(document)
    if findings.fit("train", "best"):
        yield from _best(document)


def _job_or_command(document: Document) -> Iterator[Problem]:
    given = [key for key in ("job", "command") if document.value.get(key) is not None]
    if len(given) == 2:
        yield document.problem(("command",), "either job or command", "both", "remove one of them", at_key=True)
    if not given:
        yield document.problem((), "the key job or the key command", "neither", "job: digits trains jobs/digits.py")


def _unknown_placeholders(document: Document) -> Iterator[Problem]:
    given = document.value.get("command") or ()
    commands = given if isinstance(given, dict) else {None: given}
    for role, words in commands.items():
        for index, word in enumerate(words or ()):
            path: Path = ("command", index) if role is None else ("command", role, index)
            for name in unknown(word):
                yield document.problem(path, "a known placeholder", f"{{{name}}}", nearest(name))


def _roles_without_command(document: Document, entries: Sequence[Entry]) -> Iterator[Problem]:
    """Yield a problem for each role with tasks but without a command.

    Where ``command`` has a list for each role, every role that has tasks needs one.
    """
    given = document.value.get("command")
    for role in ROLE_ORDER if isinstance(given, dict) else ():
        if _size(entries, role) and not given.get(role):
            hint = f"add {role}: with its arguments, or write one list for all roles"
            yield document.problem(("command",), f"a command for {role}, a role in cluster", "none", hint, at_key=True)


def _without_effect(document: Document) -> Iterator[Problem]:
    """Refuse ``args`` and ``train`` together with ``command``: only a job reads them."""
    for key in ("args", "train") if document.value.get("job") is None else ():
        if document.value.get(key) and document.value.get("command") is not None:
            hint = f"remove {key}: the program never reads it; write its settings as words of command"
            yield document.problem((key,), "the key job in the same file", "command", hint, at_key=True)


def _secrets(document: Document, findings: Findings, entries: Sequence[Entry]) -> Iterator[Problem]:
    listed = document.value.get("secrets")
    secrets: List[str] = []
    for index, name in enumerate(listed if isinstance(listed, list) else ()):
        if name in secrets:
            yield document.problem(("secrets", index), "each secret once", f"a second '{name}'")
        if findings.fit("secrets", index):
            secrets.append(name)
    for path in env_paths(document, findings, entries):
        if path[-1] in secrets:
            hint = "remove one of the two; the value of a secret comes from the launcher's environment"
            yield document.problem(path, "a variable that is not secret", f"'{path[-1]}', a secret", hint, at_key=True)
    yield from env_rules(document, findings, entries, secrets)


def _missing_roles(document: Document) -> Iterator[Problem]:
    listed = document.value["cluster"]
    if document.value.get("job") is not None and not listed.get("ps"):
        yield document.problem(("cluster", "ps"), "at least one ps, which holds the variables", "none")
    if document.value.get("job") is not None and listed.get(MASTER):
        hint = "rename it to chief: only a program under command may call it master"
        yield document.problem(("cluster", MASTER), "chief, with a job", "master", hint, at_key=True)
    if not any(listed.get(role) for role in (*TRAINERS, MASTER)):
        yield document.problem(("cluster", "worker"), "at least one worker, or a chief", "none")


def _crowded_roles(document: Document, entries: Sequence[Entry]) -> Iterator[Problem]:
    for role in ("chief", "evaluator"):
        own = [entry for entry in entries if entry.role == role]
        size = _size(own, role)
        if size > 1:
            yield document.problem(own[0].path[:2], f"at most one {role}", f"{size} tasks")


def _lonely_addresses(entries: Sequence[Entry]) -> Iterator[Problem]:
    """Require an address for a task on this machine where the cluster has other hosts, which must reach the task."""
    remote = next((host for entry in entries for host in entry.hosts if not is_local(host)), None)
    for entry in entries if remote else ():
        if is_local(entry.addresses[0]):
            found = f"{entry.addresses[0]}, which means another machine on {remote}"
            hint = "add address: with this machine's name or IP address"
            yield entry.problem((), "an address that the other hosts can reach", found, hint)


def _public_addresses(entries: Sequence[Entry]) -> Iterator[Problem]:
    """Refuse IP addresses that the internet can reach.

    The lead's agent checks the addresses of host names later.
    """
    expected = f"{addresses.EXPECTED}, because any client can run code in a task"
    for entry in entries:
        for address in list(addresses.exposed({each: each for each in entry.addresses}, {}))[:1]:
            yield entry.problem((), expected, address, addresses.ADVICE)


def _backup_workers(document: Document, workers: Optional[int]) -> Iterator[Problem]:
    train = document.section("train")
    backups, path = train.get("backup_workers", 0), ("train", "backup_workers")
    if backups and train.get("mode") == "async":
        yield document.problem(path, "0 in mode async", str(backups), "use mode: sync, or leave it out")
    elif backups and workers is not None and backups >= workers:
        yield document.problem(path, f"fewer than there are workers ({workers})", str(backups))


def _sync(document: Document, findings: Findings) -> Iterator[Problem]:
    """Refuse ``train.sync`` with mode async, and settings that ``sync: stock`` does not support.

    Only a synchronous step has several implementations. TensorFlow's own supports fewer settings than this project's.
    """
    train = document.section("train")
    sync = train.get("sync", Train.sync)
    if train.get("mode") == "async" and sync != Train.sync:
        hint = "use mode: sync, or leave it out"
        yield document.problem(("train", "sync"), f"{Train.sync} in mode async", sync, hint)
    elif sync == "stock":
        yield from _unfit_for_stock(document, findings, train)


def _unfit_for_stock(document: Document, findings: Findings, train: Dict[str, Any]) -> Iterator[Problem]:
    for key in UNFIT_FOR_STOCK:
        path, needed = ("train", key), getattr(Train, key)
        if findings.fit(*path) and train.get(key, needed) != needed:
            expected = f"{'null' if needed is None else needed} with sync: stock"
            found = "a mapping" if isinstance(train[key], dict) else document.written(path)
            yield document.problem(path, expected, found, "leave it out, or train with sync: plain")


def _in_graph(document: Document) -> Iterator[Problem]:
    """Refuse mode async and backup workers with ``replication: in-graph``.

    There one client takes one step after the other, so no other worker exists to wait for or to leave behind.
    """
    train = document.section("train")
    if train.get("replication") == "in-graph":
        if train.get("mode", "sync") != "sync":
            yield document.problem(
                ("train", "mode"), "sync with replication: in-graph", "async", "leave one of them out"
            )
        elif train.get("backup_workers", 0):
            found = str(train["backup_workers"])
            yield document.problem(("train", "backup_workers"), "0 with replication: in-graph", found, "leave it out")


def _best(document: Document) -> Iterator[Problem]:
    """Refuse a ``best`` without exactly one metric, and a patience where workers may end at different steps."""
    train = document.section("train")
    best = document.section("train", "best")
    given = [key for key in ("max", "min") if best.get(key)]
    path = ("train", "best")
    if len(given) == 2:
        yield document.problem(path, "either max or min", "both", "remove one of them", at_key=True)
    elif best and not given:
        hint = "max: auc keeps the checkpoint with the largest auc"
        yield document.problem(path, "the key max or the key min", "neither", hint, at_key=True)
    if best.get("patience") is None:
        return
    for key, needed in (("backup_workers", 0), ("sync", Train.sync)):
        found = train.get(key, needed)
        if found not in (needed, "plain"):
            expected = f"null with {key}: {found}, where workers do not all end at the same step"
            yield document.problem((*path, "patience"), expected, str(best["patience"]), "leave it out")


def _local_steps(document: Document) -> Iterator[Problem]:
    """Refuse windows of local steps with mode sync, in which every step is one mean of all workers."""
    train = document.section("train")
    found = train.get("local_steps", Train.local_steps)
    if found != Train.local_steps and train.get("mode", Train.mode) != "async":
        hint = "add mode: async, or leave it out"
        yield document.problem(("train", "local_steps"), f"{Train.local_steps} in mode sync", str(found), hint)


def _table_staleness(document: Document) -> Iterator[Problem]:
    """Refuse a bound on the staleness of tables in mode async, and where one client runs all workers."""
    train = document.section("train")
    found, path = train.get("table_staleness", 0), ("train", "table_staleness")
    for key, value in (("mode", "async"), ("replication", "in-graph")):
        if found and train.get(key) == value:
            yield document.problem(path, f"0 with {key}: {value}", str(found), "leave one of them out")


def _deltas(document: Document) -> Iterator[Problem]:
    """Refuse an interval of deltas that is not shorter than the interval of whole checkpoints."""
    checkpoint = document.section("train", "checkpoint")
    found, every_s = checkpoint.get("delta_every_s"), checkpoint.get("every_s", Checkpoint.every_s)
    if found is not None and found >= every_s:
        path = ("train", "checkpoint", "delta_every_s")
        yield document.problem(path, f"fewer seconds than every_s ({every_s})", str(found))


def _replicas(document: Document, entries: Optional[Sequence[Entry]]) -> Iterator[Problem]:
    """Refuse more replicas of checkpoints than there are hosts besides the chief's host.

    The chief's host has the originals. The hosts of spares keep copies, too.
    """
    checkpoint = document.section("train", "checkpoint")
    replicas, path = checkpoint.get("replicas", 0), ("train", "checkpoint", "replicas")
    if replicas and entries is not None:
        others = len({machine_of(host) for entry in entries for host in entry.hosts}) - 1
        if replicas > others:
            expected = f"at most as many as there are hosts besides the chief's ({others})"
            yield document.problem(path, expected, str(replicas))


def _size(entries: Sequence[Entry], *roles: str) -> int:
    return sum(entry.size for entry in entries if entry.role in roles)
