"""The launcher: what ``launch VERB FILE`` runs on the operator's machine.

The packages, from the lowest layer to the highest. A package imports only from lower layers;
`tests/test_architecture.py` checks that.

agent         the program that the launcher sends to every host, and runs there
status        the objects of ``status --json``, shared with the agent
hosts         run one program on one host: send its request, receive its answers
view          the view of a run in a terminal
timeline      the newest steps of all tasks on one clock, and the tasks that wait for others
openssh       hosts over SSH, by the program ``ssh``
remote        hosts over SSH, by Fabric
hostfile      import and write hosts files, and select tasks from them
environments  ``launch setup``: the Python environments of hosts
history       the runs that the hosts know, and the newest run of a name
page          a run as one HTML file
curve         the comparison of runs: their learning curves in one drawing
plan          from a spec to a plan, and to the requests of all agents
logs          ``launch logs``
monitoring    ``launch metrics``, ``launch view``
slurm         hosts by ``srun``, inside an allocation
tfjob         convert TFJob manifests of Kubernetes to hosts files, and back
teardown      ``launch down``, ``launch sweep``, ``launch prune``, and the proof that nothing is left
check         ``launch check``
run           ``launch up``: start a run, follow it, resume it, fail over
diagnosis     ``launch diagnose``
grid          ``launch grid``: a run for each combination of values
verbs         the command line, one module for each verb

Modules outside these packages:

cli        the group of all verbs; turns errors into exit codes
errors     the launcher's errors, and their exit codes
output     stdout and stderr that may be full, closed or not read
target     the hosts file of a verb, and the tasks that the verb's options select
calls      calls to several hosts at a time, and the deadline of a verb
fleet      all hosts of a run, to which requests go in parallel
transports the transport to each host: direct, SSH or Slurm
signals    Ctrl-C, SIGTERM and Ctrl-Z, as the launcher sees them
api        the interface for Python: ``launch.up``, ``launch.status``, ``launch.runs``, ``launch.Run``
"""

__all__ = ["Run", "runs", "status", "up"]


def __getattr__(name: str) -> object:
    """Import a name of ``launch.api`` at its first use: hosts lack that module, and most verbs do not need it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("launch.api"), name)
