"""What the lead decides, as functions of events and time: no process, socket, file or clock is touched here.

``supervise`` is where to begin: the phases of a run, the states of a task, and what every event means. Each rule that
has a state of its own is a module that it calls.

supervise   what to do next in a run
record      what the lead knows of one task
roster      the tasks of a run, by name, host and state
success     when a task has succeeded, and which decide
restarts    when tasks are to be started again
lives       which life each host's agent is in
leaving     in which order tasks end
saving      having the chief save before it is ended
unsaved     checkpoints that could not be written or read
formation   which tasks of a run train together
reforming   what an elastic run does when hosts come and go
frozen      which task makes no progress
standstill  how training moves, and when it stands
stragglers  which workers are slow, and what that costs
incident    one thing that went wrong, and what followed
incidents   what came first, and when training went on
kept        a bounded part of what may go on for ever
run_status  the run's status, from what is known
"""
