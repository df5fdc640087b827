"""The lead's report of its run: ``status --json``, which agents write and the launcher reads.

Hosts run this package too, so it uses Python's standard library alone.

run              the status of a run, its states and those of a task; a run as a host remembers it
task             the status of a task, and the names of tasks
incident_status  something that went wrong, what followed from it, what was done; the same in plain words
hook_event       an event of a run, as receivers get it
removals         what a host removes, or would: leftovers of a run, past runs and code
"""
