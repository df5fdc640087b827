"""The errors of an agent's own functions. Each module defines the errors that it raises.

    AgentError
    ├── a request
    │   ├── NotUnderstood    the request comes from another version of the launcher
    │   └── Gone             the launcher no longer waits for the answer
    ├── a start
    │   ├── NotReady         this host cannot take part in the run
    │   ├── NameTaken        another run of this name is up here
    │   ├── GpuTaken         another run has booked a GPU
    │   ├── ImpossibleLimit  this host cannot have a limit
    │   ├── Lacking          tasks cannot run in their container here
    │   ├── Unguarded        the ports of the run cannot be guarded
    │   └── Refused          nft rejected the lines of a guard
    ├── this machine
    │   ├── LockHeld         another process holds a lock
    │   ├── NoLocks          a file system has no locks
    │   ├── Unreadable       this user may not read the kernel's messages
    │   ├── NoAnswer         the container runtime does not work
    │   └── NoDriverAnswer   the driver of the GPUs does not answer
    ├── another host
    │   ├── LinkError        the peer has not proven itself, or has not answered in time
    │   └── DialFailure      the address of a task cannot be reached
    ├── an environment
    │   ├── Busy             another process uses, builds or removes the environment
    │   ├── NotBuilt         the environment cannot be built
    │   └── Broken           a file did not arrive whole
    ├── a program
    │   └── TooLong          a search in its log took too much time
    ├── a checkpoint
    │   ├── CopyError        a checkpoint did not arrive
    │   └── NotExported      no SavedModel of a checkpoint exists
    └── IllegalTurn          an attempt to enter a phase that cannot follow: a mistake in the supervisor

Errors of the machine (OSError) and of unreadable data (ValueError) stay unchanged.
"""


class AgentError(Exception):
    """The root of the agent's errors; the text is for people."""
