"""A host reached by ``ssh``: one login, and the programs that share it."""

import contextlib
import os
import select
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence

from cluster.spec.model import Ssh
from launch.errors import HostProblem, ProblemKind
from launch.hosts.channel import LOGIN_SHELL, Channel, Host, Silence, cause, command_line
from launch.hosts.closing import EndingProcesses
from launch.hosts.local_host import LocalChannel
from launch.hosts.relay import connected, relay_argv
from launch.hosts.retry import Backoff, persist
from launch.hosts.rpc import MOST_NOISE, STARTUP_FILES
from launch.openssh.refusals import FAILED, explain, may_pass
from launch.openssh.ssh_program import SshProgram

TRIES = 3  # times ssh.connect_timeout_s: the time for a login with all its retries, and for one login with its touch
SEND_S = 20.0
SOCKETS = "/tmp"
COMPLAINT_S = 10.0  # for the end of an ssh whose program has ended
_IN = "launch-is-logged-in"
# The login ends with its stdin, however the launcher ends. Every login shell reads this line alike.
_STAY = f"/bin/sh -c 'echo {_IN}; exec cat'"


class Logins:
    """The resources that the logins to all hosts share: settings, environment, and a folder for the logins' sockets.

    Args:
      environ: the environment of every ``ssh``.
    """

    def __init__(self, settings: Ssh, environ: Mapping[str, str]):
        if shutil.which("ssh", path=environ.get("PATH")) is None:
            missing = "ssh.transport: openssh: expected ssh on PATH, found none"
            raise HostProblem.here(missing, "install the OpenSSH client, or use ssh.transport: fabric")
        if settings.key and not os.path.isfile(os.path.expanduser(settings.key)):
            raise HostProblem.here(f"ssh.key: expected a private key, found no file {settings.key}")
        self.settings, self.environ = settings, environ
        self.ending, self.ended = EndingProcesses(), threading.Event()
        self._lock, self._folder, self._sockets = threading.Lock(), "", 0

    def socket(self) -> Path:
        """Return the path of a new socket, short enough for a socket, in a folder that only this user can open.

        Raises:
          HostProblem: no folder can be made, or the logins are closed.
        """
        with self._lock:
            if self.ended.is_set():
                raise HostProblem.here("its login was given up before it began")
            try:
                self._folder = self._folder or tempfile.mkdtemp(prefix="launch-ssh-", dir=SOCKETS)
            except OSError as error:
                why = os.strerror(error.errno or 0).lower()
                unmade = (
                    f"ssh.transport: openssh: expected a folder in which sockets can be made, found {SOCKETS}: {why}"
                )
                raise HostProblem.here(unmade, "make room there, or use ssh.transport: fabric") from error
            self._sockets += 1
            return Path(self._folder, str(self._sockets))

    def close(self) -> None:
        """End every login and every attempt in progress; nothing is left of them."""
        with self._lock:
            self.ended.set()  # no socket is made from here on
        self.ending.close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


class SshProcess(LocalChannel):
    """One ``ssh``, which runs one program on a host."""

    def __init__(self, program: SshProgram, argv: Sequence[str], logins: Logins):
        super().__init__(argv, logins.environ)
        self._program, self._logins = program, logins
        self.is_open = True  # until it is closed

    def send(self, data: bytes) -> None:
        for start in range(0, len(data), select.PIPE_BUF):  # a pipe that poll calls writable has room for so many bytes
            self._wait_for_room()
            super().send(data[start : start + select.PIPE_BUF])

    def _wait_for_room(self) -> None:
        poll = select.poll()
        poll.register(self._process.stdin or -1, select.POLLOUT | select.POLLERR)
        if not poll.poll(SEND_S * 1000):
            raise OSError(f"ssh has read nothing for {SEND_S:g} s")

    @property
    def is_alive(self) -> bool:
        """Return whether the process has not ended."""
        return self._process.poll() is None

    def complaint(self) -> str:
        """Return the last lines of stderr. Raises HostProblem if ``ssh`` itself, not the program, has failed."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(COMPLAINT_S)
        found = super().complaint()
        problem = explain(self._program, found) if self._process.poll() == FAILED else None
        if problem is not None:
            raise problem
        return found

    def interrupt(self) -> None:
        """End the process; a thread that waits for it then stops."""
        self._process.terminate()

    def close(self) -> None:
        self.is_open = False
        super().close()

    def _end(self) -> None:
        self._logins.ending.add(self._process)


class OpensshHost(Host):
    """A host by its name in the hosts file, which ``ssh`` resolves."""

    shell = LOGIN_SHELL

    def __init__(self, name: str, python: str, logins: Logins, before: Sequence[str] = ()):
        super().__init__(name, python, before)
        self._logins, self._program = logins, SshProgram(name, logins.settings)
        self._one = threading.Lock()  # of the threads that need the login
        self._login: Optional[SshProcess] = None
        self._started: List[SshProcess] = []  # and not closed
        self._sharing: List[str] = []  # the options with which programs share the login

    def connect(self) -> None:
        total_s = TRIES * self._logins.settings.connect_timeout_s
        self._login = persist(self._log_in, may_pass, Backoff(total_s, first_s=1.0), self._logins.ended.wait)

    def open(self, argv: Sequence[str]) -> Channel:
        with self._one:
            if self._login is None or not self._login.is_alive:
                self.connect()
        return self._start(command_line(argv, self.before), "ControlMaster=no", *self._sharing)

    def dial(self, port: int) -> Any:
        return connected(self.name, port, self.open(relay_argv(self.python, port)))

    def close(self) -> None:
        super().close()
        if self._login is not None:
            self._login.close()
            self._login = None
        for process in self._open():
            process.interrupt()  # a login in progress, or a program that does not answer

    def _log_in(self) -> SshProcess:
        self._sharing = [] if self._is_open() else [f"ControlPath={self._logins.socket()}"]
        login = self._start(_STAY, f"ControlMaster={'yes' if self._sharing else 'no'}", *self._sharing, level="INFO")
        try:
            self._wait_for(login)
        except BaseException:
            login.interrupt()
            login.close()
            raise
        return login

    def _wait_for(self, login: SshProcess) -> None:
        """Return once the login is done. Raises HostProblem."""
        within_s = TRIES * self._logins.settings.connect_timeout_s
        try:
            if login.skip_to(_IN.encode(), MOST_NOISE, within_s):
                return
        except Silence:
            raise self._no_login(f"no login within {within_s:g} s", "a security key may wait for a touch") from None
        except OSError as error:
            raise self._no_login(str(error), STARTUP_FILES) from error
        raise self._no_login(f"ssh ended: {cause(login.complaint()) or login.last_words() or 'without output'}")

    def _no_login(self, what: str, further: str = "") -> HostProblem:
        found = HostProblem(self.name, ProblemKind.UNREACHABLE, what, f"try `{self._program.login()}`")
        return found.with_advice(further)

    def _is_open(self) -> bool:
        """Return whether the user has opened a ControlMaster to the host."""
        try:
            done = subprocess.run(
                self._program.check(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                timeout=self._logins.settings.connect_timeout_s, check=False, env=self._logins.environ,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0

    def _start(self, command: str, *options: str, level: str = "ERROR") -> SshProcess:
        try:
            process = SshProcess(self._program, self._program.argv(command, *options, level=level), self._logins)
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise HostProblem(self.name, ProblemKind.HERE, f"cannot start ssh: {why}") from error
        self._started = [*self._open(), process]
        return process

    def _open(self) -> List[SshProcess]:
        return [process for process in self._started if process.is_open]
