"""Support for tests: what more than one package of tests uses.

agent         requests and histories of runs, and agents as real processes
browser       Chromium without a window, and what a page asks for and complains about
clocks        a clock that moves only when a test moves it
containers    a stand-in for runtimes of containers, and the real podman
fast          which test modules take milliseconds
few_values    the first value of each test, for CI
hosts         fake hosts: network namespaces with a real sshd each
instructions  how many instructions of Python run
launch        the launcher as a process, and fakes of everything that it talks to
nightly       values of parameters that only `make nightly` tests
order         the order of test files: the longest first
rewriting     the asserts of a clean checkout, rewritten once for all processes of pytest
skips         skipped tests, counted and explained at the end
sources       modules as they are written: their names and their imports
slurm         Slurm on fake hosts, and stand-ins for srun
ssh           SSH servers of asyncssh on loopback
training      clusters in one process or in several, and jobs for them
waiting       the one way to wait for something
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # of the repository
