"""Hosts that end all processes of a login with it, as logind can: ``up -d`` says so, and leaves nothing."""

from pathlib import Path
from typing import Callable

import pytest

from launch.run.outliving import ADVICE
from tests.launch.end_to_end.test_on_hosts import Cluster
from tests.support.hosts import FakeHosts, Host
from tests.support.waiting import eventually

# Ends what has this connection in its environment, with the signal of logind, once the connection's sshd has ended.
LOGIN = r"""#!/bin/sh
SSHD=$PPID setsid sh -c '
    while kill -0 $SSHD 2>/dev/null; do sleep 0.1; done
    for pid in $(grep -lzF "SSH_CONNECTION=$SSH_CONNECTION" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3); do
        [ $pid = $$ ] || kill -%s $pid
    done
' </dev/null >/dev/null 2>&1 &
exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"
"""


def end_with_logins(host: Host, number: str) -> None:
    host.run(["sh", "-c", f"cat <<'END' > /root/login\n{LOGIN % number}END\nchmod 755 /root/login"])
    host.run(["sh", "-c", "echo 'ForceCommand /root/login' >> /etc/ssh/sshd_config; kill -HUP $(cat /run/sshd.pid)"])


@pytest.mark.parametrize("number", ["TERM", "KILL"])
def test_a_host_that_ends_a_logins_processes_is_named_before_the_run_is_called_up(
    fake_hosts: Callable[[int], FakeHosts], tmp_path: Path, number: str
) -> None:
    cluster = Cluster(fake_hosts(3), tmp_path)
    cluster.write_program()
    end_with_logins(list(cluster.hosts)[1], number)
    ran = cluster.launch("up", "-d")
    ends = "h2: the run's processes there end with the login that started them"
    assert ran.returncode == 3 and ran.stdout.splitlines()[-2:] == [ends, ADVICE], ran.stdout
    assert " is up" not in ran.stdout
    eventually("nothing left", lambda: cluster.left() == [])
