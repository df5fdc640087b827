"""The lead's decisions, as functions of events and time.

No module here touches a process, socket, file or clock.

Begin with ``supervisor``, which lists all rules in their order. Each rule is an object with its own state.
``run_state`` defines the interface of a rule, the knowledge that all rules share, and the phases of a run.

supervisor      the rules of a run in their order, and the requests of an operator
run_state       the phase of a run, its result, the knowledge that all rules share, and the interface of a rule
task_records    the lead's records of the tasks, by name, host and state
task_events     rule: the reports of agents about tasks, from start to end
program_steps   rule: the steps that a program under ``command:`` reports
agents          rule: hosts whose agents have not joined yet, the current agent of each host, and lost hosts
formation       the tasks of a run that train together, without the hosts that are out, and as operators wish
elastic         rule: the formations of a run: the first, and the next when hosts come and go
handover        a planned change of the tasks that train, which loses no step
departures      rule: hosts that leave in an orderly way, before their machines shut down
failures        the failures that count against restart.max, and errors that repeat
together        rule: the common restarts of all workers
restart_policy  rule: the next attempts of tasks, and their times
ending          rules: the success of a task and of the run, the deadline, and the order in which tasks end
saving          the save of the chief before a planned end
hang_detection  rule: tasks that make no progress
split_checkpoints  rule: checkpoints of programs that no restart can read, since each host has its own folder
quietness       rule: tasks that do nothing, and the workers that remain once another worker has succeeded
incident        one problem, and its consequences
incidents       the incidents of a run, until training has resumed
root_cause      the first cause: of repeated failures, of a lost connection, of the run's failure
stall           the progress of training, and its stalls
effective       the part of the run's time in which it trained steps that count
learning_curve  rule: the curve of the loss, and the events of training
status          the run's status, and its slow workers
"""
