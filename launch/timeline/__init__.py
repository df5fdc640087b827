"""The newest steps of all tasks on one time line: the activities of each task, and the tasks that waited for others.

flights       the spans of every task, on one clock
clock_shifts  the differences of the hosts' clocks, from an exchange of times and from common steps
waits         the tasks that wait now, and their blockers; the last workers and the long spans of past steps
drawing       the time line as text, and as values that the page of a run draws
"""
