"""``launch up`` and the verbs that act on a run that lives.

lifecycle    start a run, follow it, take it down, report; begin it again where the chief's host was lost
draft        a run before it starts: plan, requests, generation, and the hosts that return to it after a boot
start        start its agents; take the start back where one fails
graph_check  find a mistake in a job before its tasks start
follower     receive a run's status from its lead, over connections made again
attached     follow a run in the terminal that started it: its lease, its agents, Ctrl-C, Ctrl-Z
resume       bring the newest checkpoint to the chief's host
"""
