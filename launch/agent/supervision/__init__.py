"""The lead's decisions, as functions of events and time.

No module here touches a process, socket, file or clock.

Begin with ``supervisor``: it has the meaning of every event, and calls one module for each rule that has a state
of its own. ``run_state`` has the phases of a run.

supervisor  the next orders of a run
run_state   the phase of a run, its result, and the only way to change them
agents      the hosts whose agents have yet to join, and the current agent of each host
record      the lead's knowledge of one task
roster      the tasks of a run, by name, host and state
success     the success of a task, and the tasks that decide
restarts    the tasks that wait for a restart
leaving     the order in which tasks end
saving      the save of the chief before the chief is ended
unsaved     checkpoints that could not be written or read
formation   the tasks of a run that train together
elastic     the formations of a run: the first, and the next when hosts come and go
frozen      tasks that make no progress
stall       the progress of training, and its stalls
stragglers  slow workers, and their cost to the others
incident    one problem, and its consequences
incidents   the incidents of a run, until training has resumed
root_cause  the first cause: of repeated failures, of a lost connection, of the run's failure
status      the run's status, from the supervisor's knowledge
"""
