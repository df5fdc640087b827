"""The files, records and locks of runs on this host.

run_folder       the paths of a run's files
runs             the runs of a name, and the run that a verb means
plan_file        the request to this host, without its secrets
process_records  the processes of a run, by pid and start time, or by container name
port_holders     the holders of ports that a run needs
locks            the locks on a run's name while the run is up, and on the removal of past runs
boot_unit        the unit by which systemd starts an agent after a boot
temporary        the folder for temporary files of an attempt, and its removal
newest_spans     the newest spans of the tasks on this host
log              the agent's own log, which tolerates a full disk
"""
