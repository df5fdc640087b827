"""The lead's decisions, as functions of events and time.

No module here touches a process, socket, file or clock.

Begin with ``supervisor``: it has the meaning of every event, and calls one module for each rule that has a state
of its own. ``run_state`` has the phases of a run.

supervisor      the next orders of a run
run_state       the phase of a run, its result, and the only way to change them
task_records    the lead's knowledge of the tasks: of each, and of all by name, host and state
agents          the hosts whose agents have yet to join, and the current agent of each host
formation       the tasks of a run that train together
elastic         the formations of a run: the first, and the next when hosts come and go
absence         a lost host, and when the run may take it back
departures      hosts that leave in order, before their machines go
wishes          the tasks that an operator drains or adds
handover        a planned change of the tasks that train, of which no step is lost
restart_policy  the tasks that get another attempt, and when
ending          the success of a task, and the order in which tasks end
saving          the save of the chief before a planned end, and checkpoints that fail
hang_detection  tasks that make no progress
incident        one problem, and its consequences
incidents       the incidents of a run, until training has resumed
root_cause      the first cause: of repeated failures, of a lost connection, of the run's failure
stall           the progress of training, and its stalls
effective       the part of the run's time in which it trained steps that count
status          the run's status, and its slow workers
"""
