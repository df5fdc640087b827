"""Show a run, or the progress of hosts, to a person in a terminal.

console        print lines; fit columns into a line; fold host names into ranges; amounts with a unit
live_view      an attached run as a live picture in a terminal: the most important lines, then a table of tasks
plain_view     an attached run in plain lines, without a terminal
run_text       the parts of a run's status in words
loss_curve     the loss over the steps, in a bounded memory; a curve in one line
run_end        the end of a run: the result, or the first cause
host_progress  the progress of many hosts with one piece of work
"""
