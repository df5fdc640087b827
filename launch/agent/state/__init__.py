"""The files, records and locks of runs on this host.

run_folder       the paths of a run's files
runs             the runs of a name, and the one that a verb means
plan_file        the request to this host, without its secrets
process_records  the processes of a run, by pid and start time, or by the names of their containers
locks            the name of a run, held while it is up; and the removal of past runs
boot_unit        the unit by which systemd starts an agent after a boot
newest_spans     the newest spans of the tasks on this host
report_file      ``report.json``: the incidents of a run
log              the agent's own log, on a full disk too
"""
