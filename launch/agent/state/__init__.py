"""The files, records and locks of runs on this host.

run_folder       the paths of a run's files
runs             the runs of a name, and the one that a verb means
plan_file        the request to this host, without its secrets
process_records  the processes of a run, by pid and start time
locks            the name of a run, held while it is up; and the removal of past runs
boot_unit        the unit by which systemd starts an agent after a boot
groups           the control groups of a run's tasks
containers       the containers of a run's tasks
leftovers        the remains of a run on this host, of its earlier agents and of earlier runs of its name, and their end
after_problem    why commands of the key ``after`` have failed
newest_spans     the newest spans of the tasks on this host
report_file      ``report.json``: the incidents of a run
log              the agent's own log, on a full disk too
"""
