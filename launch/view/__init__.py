"""Show things to a person in a terminal.

console     print lines; fold host names into ranges
live_view   an attached run as a live table in a terminal
plain_view  an attached run in plain lines elsewhere
picture     a run drawn for the room that a terminal has
task_table  the tasks of a run, a line each
columns     the columns of a table that fit into a line
run_text    the parts of a run's status in words
loss_curve  the loss over the steps, in a bounded memory
sparkline   a curve in one line
report      how a run ended: its result, or the first cause
progress    how far many hosts are with one piece of work
units       amounts with three figures and a unit
"""
