"""A hosts file is the same in what it trains after the way to a manifest and back."""

import tempfile
from pathlib import Path
from typing import Any, Dict

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.protocol.env_values import literal
from cluster.spec import Spec, load
from cluster.spec.reading import read_document
from launch.hostfile.writer import flow
from launch.tfjob.hosts_file import dealt, written
from launch.tfjob.jobs import read_tfjob
from launch.tfjob.manifest_reader import find_tfjob
from launch.tfjob.manifests import as_text, manifest

ROLES = ("ps", "chief", "worker", "evaluator")
NAMES = st.sampled_from(["A", "B_2", "PATH", "date"])
TEXTS = st.one_of(
    st.sampled_from(
        ["yes", "1e3", "0x1f", "", "$(A)", "$$(B_2)", "$$", "${A}", "$(date)", "a: b # c", "x\ny", "\u2028 é😀"]
    ),
    st.text(alphabet="$()A ~:#'\"\\\t-", max_size=8),
)
ENV = st.dictionaries(NAMES, TEXTS.map(literal), max_size=3)
LIMITS = st.fixed_dictionaries(
    {"memory_gib": st.sampled_from([None, 0.1, 1.5, 64]), "processors": st.sampled_from([None, 1, 8])}
)


@st.composite
def files(draw: Any) -> Dict[str, Any]:
    """A hosts file that a manifest can express."""
    sizes = {"ps": 2, "chief": 1, "worker": 3, "evaluator": 1}
    counts = {role: draw(st.integers(0, most)) for role, most in sizes.items()}
    if not counts["chief"]:
        counts["worker"] = max(1, counts["worker"])
    roles = [role for role in ROLES if counts[role]]
    words = st.lists(TEXTS, min_size=1, max_size=3).map(lambda rest: ["program", *rest])
    gpus = {role: draw(st.integers(0, 2)) or "none" for role in roles}
    return {
        "name": draw(st.sampled_from(["m", "mnist-2"])),
        "command": draw(st.one_of(words, st.fixed_dictionaries(dict.fromkeys(roles, words)))),
        "cluster": {role: [{"host": f"{role}0{n}", "gpus": gpus[role]} for n in range(counts[role])] for role in roles},
        "env": {role: draw(ENV) for role in roles},
        "limits": {role: draw(LIMITS) for role in roles},
        "secrets": draw(st.lists(st.sampled_from(["KEY", "TOKEN"]), unique=True)),
        "restart": {"max": draw(st.integers(0, 5))},
    }


def meaning(spec: Spec) -> Dict[str, Any]:
    """What both sides can express of a hosts file."""
    tasks = [
        (task.name, len(task.gpus), dict(task.env), task.limits and (task.limits.memory_bytes, task.limits.processors))
        for task in spec.tasks
    ]
    commands = {role: spec.command_of(role) for role in ROLES if spec.tasks_of(role)}
    return {"name": spec.name, "tasks": tasks, "commands": commands, "secrets": spec.secrets, "max": spec.restart.max}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(files())
def test_a_hosts_file_returns_from_a_manifest(values: Dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, there, back = (Path(folder) / name for name in ("hosts.yaml", "tfjob.yaml", "back.yaml"))
        path.write_text("\n".join(f"{key}: {flow(value)}" for key, value in values.items()), encoding="utf-8")
        found = manifest(load(path), read_document(path)[0], "a/b:1", "python")
        assert found.problems == []
        there.write_text(as_text(found.values), encoding="utf-8")
        job, reader = read_tfjob(find_tfjob(there, None), ())
        assert reader.problems == []
        back.write_text(written("tfjob.yaml", job, dealt(job.roles, ["h1", "h2"], None)), encoding="utf-8")
        assert meaning(load(back)) == meaning(load(path))
