"""A login offers each key in turn, and a refusal names what sshd asks for."""

from typing import List, Optional

import paramiko
import pytest

from launch.remote.connection_failures import NO_LOGIN, Unanswered, is_dropped
from launch.remote.login import Login


class Sshd:
    """A transport whose other end accepts what is named, and ends the connection after some refusals."""

    def __init__(self, *accepts: str, further: Optional[List[str]] = None, most: int = 6):
        self.accepts, self.further, self.most = accepts, further or [], most
        self.asked: List[str] = []

    def is_active(self) -> bool:
        return len(self.asked) < self.most

    def auth_publickey(self, user: str, key: str) -> List[str]:
        self.asked.append(key)
        if key not in self.accepts:
            raise paramiko.AuthenticationException("Authentication failed.")
        return self.further


def log_in(sshd: Sshd, *keys: str) -> List[str]:
    Login("me", list(keys)).authenticate(sshd)
    return sshd.asked


def refusal(sshd: Sshd, *keys: str) -> str:
    with pytest.raises(paramiko.AuthenticationException) as caught:
        log_in(sshd, *keys)
    assert not is_dropped(caught.value)
    return str(caught.value)


def test_keys_are_offered_in_turn_until_one_is_accepted() -> None:
    assert log_in(Sshd("b", "c"), "a", "b", "c") == ["a", "b"]


def test_a_refusal_is_named_and_so_is_the_want_of_keys() -> None:
    assert refusal(Sshd(), "a", "b") == "Authentication failed."
    assert refusal(Sshd()) == "no key to offer: none in ssh-agent, none in ~/.ssh"


def test_a_second_factor_is_named() -> None:
    asks = Sshd("a", further=["password", "keyboard-interactive"])
    assert refusal(asks, "a") == "sshd asks for password or keyboard-interactive in addition"


@pytest.mark.parametrize("most", [1, 2])
def test_a_connection_that_sshd_ends_after_refused_keys_is_a_refusal_and_not_tried_again(most: int) -> None:
    assert refusal(Sshd("c", most=most), "a", "b", "c") == "sshd ended the login: Authentication failed."


def test_a_login_without_an_answer_is_waited_for_once_and_not_for_every_key() -> None:
    class Mute(Sshd):
        """An sshd that waits for a user database."""

        def auth_publickey(self, user: str, key: str) -> List[str]:
            self.asked.append(key)
            raise paramiko.AuthenticationException("Authentication timeout.")

    sshd = Mute()
    with pytest.raises(Unanswered) as caught:
        log_in(sshd, "a", "b")
    assert caught.value.stage == NO_LOGIN and sshd.asked == ["a"]
