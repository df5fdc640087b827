"""Show things to a person in a terminal.

console     print lines; fold host names into ranges
live_view   an attached run: a live table in a terminal, plain lines elsewhere
task_table  the tasks of a run, a row each
formations  the hosts that an elastic run trains on
report      how a run ended: its result, or the first cause
progress    how far many hosts are with one piece of work
units       amounts with three figures and a unit
"""
