"""The published schema, the nouns in the code and the reference say the same."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, List

import pytest
from jsonschema import Draft7Validator

from cluster.spec import Restart, Setup, Spec, Ssh, load, schema
from cluster.spec.schema import keys
from cluster.task import Train, WarmStart
from tests.support import ROOT

REFERENCE = (ROOT / "docs" / "hosts-file.md").read_text(encoding="utf-8")
EXAMPLES = [block for block in re.findall(r"```yaml\n(.*?)```", REFERENCE, re.DOTALL) if "cluster:" in block]


def flat(values: Dict[str, Any], prefix: str) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for key, value in values.items():
        found.update(flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value})
    return found


def test_the_schema_is_a_valid_one_of_the_draft_that_editors_read() -> None:
    Draft7Validator.check_schema(schema())


def test_the_schema_s_defaults_are_those_of_the_dataclasses() -> None:
    nouns: Dict[str, Any] = {"train.": Train(), "restart.": Restart(), "ssh.": Ssh(), "setup.": Setup()}
    for prefix, values in nouns.items():
        inner = "train.warm_start."  # of a key that is null
        stated = {key: node["default"] for key, node in keys().items()
                  if key.startswith(prefix) and not key.startswith(inner)}  # fmt: skip
        stated.pop("train.checkpoint", None)
        stated.pop("train.best", None)
        found = flat(values.to_dict() if isinstance(values, Train) else asdict(values), prefix)
        found.pop("train.verify", None)  # no key of a hosts file
        assert stated == found
    warm = {"only": WarmStart.only, "rename": WarmStart().rename}
    assert {key: keys()[f"train.warm_start.{key}"]["default"] for key in warm} == warm
    assert keys()["workdir"]["default"] == Spec.workdir


@pytest.mark.parametrize("key", keys())
def test_every_key_has_a_description_that_editors_show(key: str) -> None:
    assert keys()[key]["description"].endswith(".")


@pytest.mark.parametrize("key", keys())
def test_every_key_is_in_the_reference_with_its_default(key: str) -> None:
    row = next((line for line in REFERENCE.splitlines() if line.startswith(f"| `{key}` |")), None)
    assert row is not None, f"docs/hosts-file.md has no row for {key}"
    default = keys()[key].get("default")
    if default not in (None, {}, []):
        assert row.split("|")[2].strip() == f"`{default if isinstance(default, str) else json.dumps(default)}`"


def test_the_reference_has_no_key_that_the_schema_lacks() -> None:
    assert [key for key in re.findall(r"^\| `([^`]+)` \|", REFERENCE, re.MULTILINE) if key not in keys()] == []


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_of_the_reference_is_read(example: str, tmp_path: Path) -> None:
    path = tmp_path / "hosts.yaml"
    path.write_text(example)
    assert load(path).tasks


def test_the_reference_has_examples() -> None:
    assert len(EXAMPLES) >= 3


def examples() -> List[Any]:
    return [(key, example) for key, node in keys().items() for example in node.get("examples", [])]


@pytest.mark.parametrize(("key", "example"), examples())
def test_every_example_in_the_schema_fits_it(key: str, example: Any) -> None:
    node = {**keys()[key], "definitions": schema()["definitions"]}
    node.pop("$ref", None)
    assert list(Draft7Validator(node).iter_errors(example)) == []
