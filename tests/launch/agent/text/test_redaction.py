"""What looks like a secret does not leave a host, wherever it stands; what does not, stays readable."""

import base64
from typing import List
from urllib.parse import quote

import pytest

from launch.agent.text import Redaction, is_secret, mask

HARMLESS = ["PATH", "PWD", "CUDA_VISIBLE_DEVICES", "LAUNCH_RUN", "HOME", "MONKEY", "AUTHOR"]
SECRET = ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "DB_PASS", "password", "API_KEY", "MYSQL_PWD", "apikey"]


@pytest.mark.parametrize("name", SECRET)
def test_a_name_says_that_it_holds_a_secret(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", HARMLESS)
def test_other_names_do_not(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("train --password hunter22 --steps 5", "train --password (secret) --steps 5"),
        ("train --api-key=hunter22", "train --api-key=(secret)"),
        ('{"token": "hunter22"}', '{"token": "(secret)"}'),
        ("https://me:hunter22@host/x", "https://(secret)@host/x"),
        ("step 5, loss 0.3 at worker:1", "step 5, loss 0.3 at worker:1"),
    ],
)
def test_what_stands_behind_a_secret_s_name_is_hidden(text: str, shown: str) -> None:
    assert Redaction().text(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nx", "(secret)\nx"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl", "(secret)"),  # the rest lies in another piece
        ("clone with ghp_0123456789abcdefghijABCDEFGHIJ456789", "clone with (secret)"),
        ("AKIAIOSFODNN7EXAMPLE may read", "(secret) may read"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N", "jwt (secret)"),
        ("curl -H 'Authorization: Bearer abc.DEF_123-x'", "curl -H 'Authorization: Bearer (secret)'"),
        ("post https://hooks.slack.com/services/T0/B0/abc now", "post https://(secret) now"),
        ("https://discord.com/api/webhooks/123/abc-DEF", "https://discord.com/api/webhooks/(secret)"),
        (
            "https://b.s3.amazonaws.com/k?X-Amz-Signature=0a1b&n=1",
            "https://b.s3.amazonaws.com/k?X-Amz-Signature=(secret)&n=1",
        ),
        ("Server=db;Uid=me;Pwd=hunter22;Port=1", "Server=db;Uid=me;Pwd=(secret);Port=1"),
        ("PWD=/home/me/run", "PWD=/home/me/run"),
        ("risk-averse and sk-learn, basic training", "risk-averse and sk-learn, basic training"),
    ],
)
def test_what_is_a_secret_by_its_form_is_hidden(text: str, shown: str) -> None:
    assert Redaction().text(text) == shown


@pytest.mark.parametrize("secret", ["hunter22", "pa/ss?w+rd", "\u00fcber-geheim"])
@pytest.mark.parametrize("before", ["", "m", "me", "me:"])
def test_a_known_secret_is_hidden_in_base64_and_in_a_url_too(secret: str, before: str) -> None:
    redaction = Redaction([secret])
    for alphabet in (None, b"-_"):
        text = base64.b64encode(f"{before}{secret}@host".encode(), alphabet).decode()
        hidden = redaction.text(f"sent {text}.").replace("(secret)", "")
        assert len(hidden) < len(text) + 6 - len(secret)
        assert base64.b64encode(secret.encode(), alphabet).decode()[2:-4] not in hidden
    assert redaction.text(f"http://host/?q={quote(secret, safe='')}&n=1") == "http://host/?q=(secret)&n=1"


def test_the_value_of_a_secret_variable_is_hidden_wherever_it_stands() -> None:
    redaction = Redaction(["run-token"], [{"X_TOKEN": "abcdefgh", "OTHER": "plainly", "MINE": "by-name"}], ["MINE"])
    assert redaction.text("abcdefgh run-token by-name plainly") == "(secret) (secret) (secret) plainly"
    assert redaction.value({"argv": ["a", "xabcdefghx"], "n": 3}) == {"argv": ["a", "x(secret)x"], "n": 3}
    assert redaction.value(["--db-pass", "p", "--n=1", "q"]) == ["--db-pass", "(secret)", "--n=1", "q"]
    assert redaction.value({"password": "p", "none": None}) == {"password": "(secret)", "none": None}


def test_a_value_that_is_too_short_to_be_looked_for_is_hidden_under_its_name_alone() -> None:
    redaction = Redaction((), [{"X_TOKEN": "1"}])
    assert redaction.text("step 11") == "step 11"
    assert redaction.environment({"X_TOKEN": "1"}) == {"X_TOKEN": "(not shown)"}


def test_of_an_environment_every_name_is_told_and_few_values() -> None:
    told = Redaction().environment({"PATH": "/bin", "TF_CONFIG": "{}", "CUSTOMER": "who", "TF_TOKEN": "x"})
    assert told == {"CUSTOMER": "(not shown)", "PATH": "/bin", "TF_CONFIG": "{}", "TF_TOKEN": "(not shown)"}


@pytest.mark.parametrize(
    ("text", "secrets", "shown"),
    [
        ("login hunter22 failed, hunter22!", ["hunter22"], "login (secret) failed, (secret)!"),
        ("a key: MIIEv+AAAA", ["-----BEGIN-----\nMIIEv+AAAA\n"], "a key: (secret)"),  # line by line, as logs are
        ("long-and-longer", ["long-and", "long-and-longer"], "(secret)"),
        ("step 1 of 10", ["1", "10"], "step 1 of 10"),  # too short to be told from other text
        ("nothing", [], "nothing"),
    ],
)
def test_every_line_of_every_secret_is_replaced(text: str, secrets: List[str], shown: str) -> None:
    assert mask(text, secrets) == shown
