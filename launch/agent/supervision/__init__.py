"""The decisions of the lead, the agent on the chief's host, as functions of events and time.

No module here touches a process, socket, file or clock.

Begin with ``supervisor``, which lists all rules in their order. Each rule is an object with its own state.
``run_state`` defines the interface of a rule, the knowledge that all rules share, and the phases of a run.

supervisor      the rules of a run in their order, and the requests of an operator
run_state       the phase of a run, its result, the knowledge that all rules share, and the interface of a rule
task_records    the lead's records of the tasks, by name, host and state
task_events     rule: the reports of agents about tasks, from start to end
program_steps   rule: the steps that a program under ``command:`` reports
agent_lives     the agents of a host, one after the other, and the bound for how often they end
agents          rules: the start of a run once its hosts have joined, replaced agents, and lost hosts
formation       the tasks of a run that train together, without absent hosts and drained tasks
elastic         rule: the first formation of a run, and the next one when a host is lost or returns
handover        a planned change of the tasks that train, which loses no step
departures      rule: hosts that leave in an orderly way, before their machines shut down
failures        the failures that count against restart.max, and errors that repeat
together        rule: restart all workers when one of them restarts
restart_policy  rule: whether and when a failed task restarts
ending          rules: the success of a task and of the run, the deadline, and the order in which tasks end
saving          requests to the chief to save a checkpoint before a planned end
hang_detection  rule: tasks that make no progress
split_checkpoints  rule: checkpoints of programs that no restart can read, since each host has its own folder
quietness       rule: tasks that do nothing, and the workers that remain once another worker has succeeded
incident        one problem, and its consequences
incidents       the incidents of a run, until training has resumed
root_cause      the first cause of repeated failures, of a lost connection, and of the run's failure
stall           the progress of training, and its stalls
effective       the share of the run's time that was spent on steps that count
learning_curve  rule: the curve of the loss, and the events of training
status          the run's status, and its slow workers
"""
