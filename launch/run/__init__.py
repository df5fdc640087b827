"""``launch up`` and the verbs that act on a live run.

lifecycle    start a run, follow it, take it down, report; start a successor where the chief's host was lost
draft        a run before its start: plan, requests, generation, and the hosts that return to the run after a boot
start        start the run's agents; undo the start where one of them fails
graph_check  find a mistake in a job before its tasks start
follower     receive a run's status from its lead, over connections that are renewed
attached     follow a run in the terminal that started it: its lease, its agents, Ctrl-C, Ctrl-Z
outliving    the proof that a detached run outlives the logins that started it
resume       copy the newest checkpoint to the chief's host
"""
