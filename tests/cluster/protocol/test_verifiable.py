"""Settings whose steps one process cannot repeat are refused, with what to do."""

from typing import Any

import pytest

from cluster.protocol.verifiable import unverifiable
from cluster.task import Train


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mode", "async"),
        ("replication", "in-graph"),
        ("backup_workers", 1),
        ("local_steps", 4),
        ("wire", "bfloat16"),
        ("sync", "stock"),
    ],
)
def test_a_setting_that_cannot_be_verified_is_named(key: str, value: Any) -> None:
    (text,) = unverifiable(Train.from_dict({key: value}))
    assert text.startswith(f"train.{key}: expected ") and f"found {value}" in text and f"--set train.{key}=" in text


@pytest.mark.parametrize(
    "settings", [{}, {"sync": "plain"}, {"clip_norm": 1.0}, {"accumulate": 3}, {"towers": 4, "on_nan": "ignore"}]
)
def test_every_other_setting_can(settings: Any) -> None:
    assert list(unverifiable(Train.from_dict(settings))) == []
