"""TFJob manifests in the shapes of public ones, and how a test reads them."""

from pathlib import Path
from typing import List, Optional, Sequence, Tuple

from launch.tfjob.jobs import TFJob, read_tfjob
from launch.tfjob.manifest_reader import ManifestReader, find_tfjob

HEAD = "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: mnist}\n"
CONTAINER = "{name: tensorflow, command: [python, m.py]%s}"


def replicas(kind: str, more: str = "", container: str = "") -> str:
    """One kind of replicas on one line."""
    return f"    {kind}: {{{more}template: {{spec: {{containers: [{CONTAINER % container}]}}}}}}\n"


def tfjob(*kinds: str, spec: str = "") -> str:
    return f"{HEAD}spec:\n{spec}  tfReplicaSpecs:\n{''.join(kinds)}"


def read(folder: Path, text: str, entrypoint: Optional[Sequence[str]] = None) -> Tuple[TFJob, ManifestReader]:
    path = folder / "tfjob.yaml"
    path.write_text(text)
    return read_tfjob(find_tfjob(path, None), entrypoint)


def problems(folder: Path, text: str, entrypoint: Optional[Sequence[str]] = None) -> List[str]:
    """The problems of a manifest, without the folder's name."""
    _, reader = read(folder, text, entrypoint)
    return [str(problem).replace(f"{folder}/", "") for problem in reader.problems]


def notes(folder: Path, text: str) -> List[str]:
    _, reader = read(folder, text)
    assert reader.problems == []
    return [line.replace(f"{folder}/", "") for line in reader.notes()]
