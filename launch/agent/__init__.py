"""The part that runs on a host: one agent per host and run, on Python's standard library alone.

The agent owns its host's tasks: it starts them, writes their logs, notices when they
end, and is the only thing that signals them. The agent on the chief's host is the
*lead*: it also supervises the whole run. The others are *members*; each dials the lead.
Rooms, each above those before it:

  linux         processes, sockets, files and the kernel of this machine
  text          the output of programs, made fit to be shown
  wire          the launcher's request to an agent
  gpus          the GPUs of this host, and their holders
  state         files, records and locks of runs
  protocol      messages and connections between agents
  network       names, ports and ways between hosts
  endings       the reason why a task's process ended
  containers    containers of tasks: their commands, their runtimes, their removal
  limits        limits of tasks, and what enforces them
  leftovers     the remains of a run on this host, of its earlier agents and of earlier runs of its name, and their end
  supervision   the lead's decisions, as pure functions
  tasks         the task processes of this host
  checkpoints   checkpoints here, and on their way
  environments  Python environments, for ``launch setup``
  retention     past runs and unused code, and their removal
  hooks         events of the run, and their receivers
  after         the commands of the key ``after``, once this host's part of the run is over
  notice        the notice that this host's machine is to go
  facts         the facts of this host, for ``launch check`` and ``launch diagnose``
  service       the long-lived agent process
  verbs         the short-lived verbs
  diagnosis     this host's part of ``launch diagnose``
  __main__      the verbs' entry
  errors        what the agent raises, with one root
  bootstrap     first contact: takes the shipped code, becomes a verb
"""
