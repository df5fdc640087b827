"""The lead's decisions, as functions of events and time.

No module here touches a process, socket, file or clock.

Begin with ``supervisor``: it has the list of all rules, in their order. Each rule is an object with a state of its
own; ``run_state`` has its form, what all rules know, and the phases of a run.

supervisor      the rules of a run in their order, and what an operator asks for
run_state       the phase of a run, its result, the knowledge that all rules share, and the form of a rule
task_records    the lead's knowledge of the tasks: of each, and of all by name, host and state
task_events     rule: what agents report of tasks, from their start to their end
agents          rule: the hosts whose agents have yet to join, the current agent of each host, and lost hosts
formation       the tasks of a run that train together, by the hosts that are out and the wishes of operators
elastic         rule: the formations of a run: the first, and the next when hosts come and go
handover        a planned change of the tasks that train, of which no step is lost
departures      rule: hosts that leave in order, before their machines go
restart_policy  rule: the tasks that get another attempt, and when
ending          rule: the success of a task and of the run, and the order in which tasks end
saving          the save of the chief before a planned end
hang_detection  rule: tasks that make no progress
incident        one problem, and its consequences
incidents       the incidents of a run, until training has resumed
root_cause      the first cause: of repeated failures, of a lost connection, of the run's failure
stall           the progress of training, and its stalls
effective       the part of the run's time in which it trained steps that count
status          the run's status, and its slow workers
"""
