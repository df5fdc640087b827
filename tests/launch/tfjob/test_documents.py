"""The TFJob in a file is found, and named where there are several."""

from pathlib import Path

import pytest

from cluster.errors import SpecError
from launch.tfjob.manifest_reader import find_tfjob

ONE = "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: one}\nspec: {}\n"


INDENTED = ONE.replace("\n", "\n  ").rstrip(" ")


def found(folder: Path, text: str, name: str = "") -> str:
    path = folder / "tfjob.yaml"
    path.write_text(text)
    try:
        document = find_tfjob(path, name or None)
    except SpecError as error:
        return str(error).replace(f"{folder}/", "")
    return f"{document.value['metadata']['name']}, line {document.place(('kind',)).line}"


@pytest.mark.parametrize(
    ("text", "name", "result"),
    [
        (ONE, "", "one, line 2"),
        (f"kind: ConfigMap\n---\n{ONE}", "", "one, line 4"),
        (f"--- # first\n{ONE}...\n---\n{ONE.replace('one', 'two')}", "two", "two, line 9"),
        (f"---\n{ONE}---\n", "one", "one, line 3"),
        (f"kind: List\nitems:\n- {INDENTED}- {{kind: Pod}}\n", "", "one, line 4"),
        (f"kind: TFJobList\nitems:\n- {INDENTED}- {INDENTED.replace('one', 'two')}", "two", "two, line 8"),
        (f"{ONE}---\nkind: List\nitems:\n- {INDENTED.replace('one', 'two')}", "two", "two, line 9"),
        (f"kind: List\nitems: {{a: b}}\n---\n{ONE}", "", "one, line 5"),
        ("a: |\n  ---\n  kind: TFJob\n---\n" + ONE, "", "one, line 6"),
    ],
)
def test_a_tfjob_is_found_with_its_line(tmp_path: Path, text: str, name: str, result: str) -> None:
    assert found(tmp_path, text, name) == result


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", "",
         "tfjob.yaml: expected a document with kind: TFJob, found none — `kubectl get tfjob NAME -o yaml` prints such "
         "a document"),
        (f"{ONE}---\n{ONE.replace('one', 'two')}", "",
         "tfjob.yaml:7:7: kind: expected one TFJob, found 2: one, two — choose one by --name"),
        (f"kind: List\nitems:\n- {INDENTED}- {INDENTED.replace('one', 'two')}", "",
         "tfjob.yaml:8:9: kind: expected one TFJob, found 2: one, two — choose one by --name"),
        (ONE, "two", "tfjob.yaml: expected a TFJob named 'two', found one"),
        (ONE.replace("org/v1", "org/v1alpha2"), "",
         "tfjob.yaml:1:13: apiVersion: expected kubeflow.org/v1, found 'kubeflow.org/v1alpha2' — "
         "convert the manifest to this version: other versions name fields differently"),
        (f"{ONE}a: [\n", "", "tfjob.yaml:6:1: expected"),
        (f"x: 1\n---\n{ONE}kind: b\n", "", "tfjob.yaml:7:1: expected each key once, found a second 'kind'"),
    ],
)  # fmt: skip
def test_any_other_file_is_refused_with_the_next_step(tmp_path: Path, text: str, name: str, message: str) -> None:
    assert found(tmp_path, text, name).startswith(message)


def test_a_missing_file_is_refused_as_a_manifest(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="expected a manifest that can be read, found no such file"):
        find_tfjob(tmp_path / "no.yaml", None)


def test_a_huge_manifest_is_refused_without_advice_for_hosts_files(tmp_path: Path) -> None:
    message = found(tmp_path, "#" * ((2 << 20) + 1))
    assert message == "tfjob.yaml: expected a manifest of at most 2 MiB, found a larger one"
