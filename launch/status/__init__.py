"""The lead's report of its run: ``status --json``, which agents write and the launcher reads.

Hosts run this package too, so it imports only Python's standard library.

run              the status of a run; the states of a run and of a task; a host's record of a run
run_history      the learning curve of a run, recorded in a bounded size
task             the status of a task; the names of tasks
incident_status  an incident, its consequences, and the launcher's actions; the same in plain words
hook_event       an event of a run, as sent to receivers
removals         removals on a host, done or proposed: leftovers of a run, past runs and code
"""
