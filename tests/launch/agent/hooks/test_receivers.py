"""A receiver has its secrets where nobody else can read them, and a name in messages without any."""

import json
import sys
from pathlib import Path

import pytest

from cluster.protocol.settings import Hook
from launch.agent.hooks import post
from launch.agent.hooks.receivers import Receiver, label_of, receivers
from launch.status.hook_event import HookEvent

SECRETS = {"CHAT_URL": "https://chat.example.com/hook/hunter2", "TOKEN": "s3cret"}
EVENT = HookEvent(id="r/failed", event="failed", text="r has failed")
HERE = Path("/w/worker.0/work")


def receiver(hook: Hook) -> Receiver:
    (made,) = receivers([hook], SECRETS, HERE, {"HOME": "/home/me"})
    return made


def test_a_command_reads_the_event_and_has_the_secrets_in_its_environment() -> None:
    made = receiver(Hook("failed", ("sh", "notify.sh", "{TOKEN}")))
    assert (made.argv, made.folder) == (("sh", "notify.sh", "{TOKEN}"), HERE)
    assert made.env == {"HOME": "/home/me", **SECRETS}
    assert json.loads(made.line(EVENT))["id"] == "r/failed" and made.line(EVENT).endswith(b"}\n")


def test_a_url_gets_its_secrets_on_standard_input_and_in_no_argument_or_variable() -> None:
    made = receiver(Hook("failed", url="{CHAT_URL}?a={b}", headers={"Authorization": "Bearer {TOKEN}"}))
    assert made.argv == (sys.executable, "-I", post.__file__) and made.env == {"HOME": "/home/me"}
    given = json.loads(made.line(EVENT))
    assert given["url"] == SECRETS["CHAT_URL"] + "?a={b}"
    assert (given["headers"], given["event"]["text"]) == ({"Authorization": "Bearer s3cret"}, "r has failed")


@pytest.mark.parametrize(
    ("hook", "label"),
    [
        (Hook("failed", ("/opt/bin/page", "--key=x")), "page"),
        (Hook("failed", url="{CHAT_URL}/more"), "{CHAT_URL}"),
        (Hook("failed", url="https://me:pass@h:8443/services/T0/key?x=y"), "https://h:8443/…"),
        (Hook("failed", url="https://h"), "https://h"),
        (Hook("failed", url="http://h/?key=1"), "http://h/…"),
    ],
)
def test_a_receiver_is_named_without_anything_that_may_be_secret(hook: Hook, label: str) -> None:
    assert label_of(hook) == label
    assert receiver(hook).label == f"on.failed ({label})"
    assert "s3cret" not in repr(receiver(hook)) and "hunter2" not in repr(receiver(hook))
