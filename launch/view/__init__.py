"""Show things to a person in a terminal.

console        print lines; fit columns into a line; fold host names into ranges; amounts with a unit
live_view      an attached run as a live picture in a terminal: what matters first, then a table of the tasks that fit
plain_view     an attached run in plain lines elsewhere
run_text       the parts of a run's status in words
loss_curve     the loss over the steps, in a bounded memory; a curve in one line
run_end        how a run ended: its result, or the first cause
host_progress  how far many hosts are with one piece of work
"""
