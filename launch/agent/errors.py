"""The errors of an agent's own functions. Each module defines the errors that it raises.

    AgentError
    ├── a request
    │   ├── NotUnderstood    the request comes from another version of the launcher
    │   └── Gone             the launcher no longer waits for the answer
    ├── a start
    │   ├── NotReady         this host cannot take part in the run
    │   ├── NameTaken        another run of this name is running on this host
    │   ├── EndedForGood     a user has ended this run, or the run that it would succeed
    │   ├── GpuTaken         another run has reserved a GPU
    │   ├── ImpossibleLimit  this host cannot enforce a limit of a task
    │   ├── Lacking          tasks cannot run in their container on this host
    │   ├── Unguarded        the ports of the run cannot be guarded
    │   └── Refused          nft rejected the firewall rules of a guard
    ├── this machine
    │   ├── LockHeld         another process holds a lock
    │   ├── NoLocks          a file system has no locks
    │   ├── Unreadable       this user may not read the kernel's messages
    │   ├── NoAnswer         the container runtime does not work
    │   └── NoDriverAnswer   the driver of the GPUs does not answer
    ├── another host
    │   ├── LinkError        the other agent has not authenticated itself, or has not answered in time
    │   └── DialFailure      the address of a task cannot be reached
    ├── an environment
    │   ├── Busy             another process uses, builds or removes the environment
    │   ├── NotBuilt         the environment cannot be built
    │   └── Broken           a file arrived damaged
    ├── a program
    │   └── TooLong          a search in the program's log took too much time
    ├── a checkpoint
    │   ├── CopyError        a checkpoint did not arrive
    │   └── NotExported      no SavedModel of a checkpoint exists
    └── IllegalTurn          the supervisor tried to enter a phase that cannot follow the current one: a bug

Errors of the machine (OSError) and of unreadable data (ValueError) are not converted to these errors.
"""


class AgentError(Exception):
    """The base class of the agent's errors. The text of an error is a message for the user."""
