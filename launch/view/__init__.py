"""Show a run, or the progress of hosts, to a person in a terminal.

console        print lines; fit columns into a line; fold host names into ranges; amounts with a unit
live_view      an attached run as a live picture in a terminal: the most important lines, then the table of tasks
task_table     the table of tasks: the rows and the columns that fit
watch_keys     the keys of ``launch status --watch`` and their effect, without a terminal
keyboard       the live view that reacts to these keys
notebook_view  a run in a notebook
plain_view     an attached run in plain lines, without a terminal
run_text       the parts of a run's status in words
differences    the settings that differ between runs, and a value in words
robust_scale   a scale on which a few extreme values do not flatten a curve; a curve in one line
run_end        the end of a run: the result, or the first cause
host_progress  the progress of many hosts with one piece of work
"""
