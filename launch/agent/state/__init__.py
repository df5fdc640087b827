"""The files, records and locks of runs on this host.

run_folder       where a run keeps its files
runs             the runs of a name, and the one that a verb means
plan_file        what this host was asked to run, without its secrets
process_records  which processes are a run's, by pid and start time
locks            the name of a run, held while it is up
leftovers        what of a run is on this host, and its end
report           ``report.json``: what went wrong in a run
log              the agent's own log, on a full disk too
"""
