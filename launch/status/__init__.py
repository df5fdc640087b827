"""The lead's report of its run: ``status --json``, which agents write and the launcher reads.

Hosts run this package too, so it uses Python's standard library alone.

run            the status of a run, and of the formation of an elastic one
run_record     a run as a host remembers it
task           the status of a task
incident       something that went wrong, what followed from it, and what was done
incident_text  an incident in plain words
hook_event     an event of a run, as receivers get it
pruned         past runs and code that a host removes
leftovers      what a run has on a host: processes, ports, GPU memory, locks
states         the states of a run and of a task
task_names     the names of tasks
moments        times in UTC, with the offset
meanings       the meaning of each field, of which the reference is made
values         dataclasses as JSON values, and back
"""
