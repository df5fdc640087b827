"""``launch up`` and the verbs that act on a run that lives.

lifecycle       start a run, follow it, take it down, report
draft           a run before it starts: its plan and its requests
hook_check      refuse receivers of events that the secrets spoil
start           start its agents; take the start back where one fails
graph_check     find a mistake in a job before its tasks start
follower        receive the run's status from its lead, over a connection that is made again
attached        follow a run in a terminal: its lease, Ctrl-C, Ctrl-Z
agent_restarts  start agents again that died under an attached run
boot_returns    the hosts that come back to a detached run after a boot
resume          bring the newest checkpoint to the chief's host
failover        begin the run again where the chief's host was lost
observer        look at a run that somebody else has started
restart         restart tasks in place, and wait until they are up
drain           wait until a run trains with other tasks
export          fetch the SavedModel of a checkpoint from the chief's host
verification    what ``launch verify`` runs, and how it reports
"""
