"""The errors of an agent's own functions. Each is defined where it is raised.

    AgentError
    ├── a request
    │   ├── NotUnderstood    of another version of the launcher
    │   └── Gone             nobody waits for its answer any more
    ├── a start
    │   ├── NotReady         this host cannot take part in the run
    │   ├── NameTaken        another run of this name is up here
    │   ├── GpuTaken         another run has booked a GPU
    │   ├── ImpossibleLimit  this host cannot have a limit
    │   ├── Lacking          tasks cannot run in their container here
    │   ├── Unguarded        the ports of the run cannot be guarded
    │   └── Refused          nft did not take its lines
    ├── this machine
    │   ├── LockHeld         somebody else holds a lock
    │   ├── NoLocks          a file system has none
    │   ├── Unreadable       this user may not read the kernel's messages
    │   ├── NoAnswer         the runtime of containers does not work
    │   └── NoDriverAnswer   the driver of the GPUs does not
    ├── another host
    │   ├── LinkError        it is not who it should be, or was not in time
    │   └── DialFailure      the address of a task cannot be reached
    ├── an environment
    │   ├── Busy             somebody else uses, builds or removes it
    │   ├── NotBuilt         it cannot be built
    │   └── Broken           a file did not arrive whole
    ├── a checkpoint
    │   ├── CopyError        it did not arrive
    │   └── NotExported      there is no SavedModel of it
    └── IllegalTurn          a run was to enter a phase that cannot follow: a mistake in the supervisor

What the machine raises (OSError), and what cannot be read (ValueError), stays what it is.
"""


class AgentError(Exception):
    """Root of the agent's errors; the text is what a person reads."""
