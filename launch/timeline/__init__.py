"""The newest steps of all tasks on one time line: what each did, and which waited for which.

flights       the spans of every task, on one clock
clock_shifts  the differences of the hosts' clocks, from an exchange of times and from common steps
waits         the tasks that wait now, and those that they wait for; in past steps who gave last, and what took long
drawing       the same in lines, and as values that the page of a run draws
"""
