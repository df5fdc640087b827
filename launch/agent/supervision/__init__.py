"""The lead's decisions, as functions of events and time.

No module here touches a process, socket, file or clock.

Begin with ``supervise``: it has the phases of a run, the states of a task, and the meaning of every event.
``supervise`` calls one module for each rule that has a state of its own.

supervise   the next orders of a run
record      the lead's knowledge of one task
roster      the tasks of a run, by name, host and state
success     the success of a task, and the tasks that decide
restarts    the tasks that wait for a restart
lives       the current life of each host's agent
leaving     the order in which tasks end
saving      the save of the chief before the chief is ended
unsaved     checkpoints that could not be written or read
formation   the tasks of a run that train together
reforming   the answer of an elastic run to hosts that come and go
frozen      tasks that make no progress
standstill  the progress of training, and its pauses
stragglers  slow workers, and their cost to the others
incident    one problem, and its consequences
incidents   first causes, and the return of training
kept        a bounded part of an unbounded sequence
run_status  the run's status, from the supervisor's knowledge
"""
