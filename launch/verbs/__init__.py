"""The verbs of the command line, which ``launch.cli`` groups. A module has one verb, or a few related verbs.

options       the argument FILE and the options that verbs share, with their completion at the Tab key
init          ``launch init`` and ``launch schema``: write a first job; print the schema of hosts files
up            train the job that FILE describes
run_program   ``launch run``: a program on hosts of the command line
grid          train once for each combination of values
verify        compare the distributed run with one process
plan          show the tasks and their hosts
check         find the obstacles to a run
setup         build the hosts' Python environments
status        show the state of a run
runs          list the runs on the hosts of FILE
logs          print tasks' logs
board         open TensorBoard
metrics       serve a status to Prometheus
page          ``launch report`` and ``launch view``: print the page of a run, or serve it live
task_changes  ``launch restart`` and ``launch drain``: restart tasks; take them out of a run, or put them back
export        write a SavedModel, or what has changed since one
export_files  receive the files of an export
down          end a run
sweep         find the leftovers of earlier runs
prune         remove past runs and unused code
diagnose      collect evidence that may explain the state of a run
import_hosts  ``launch import``: a hosts file from the list of another launcher or of a batch job
tfjob         ``launch import tfjob`` and ``launch manifest``: a hosts file from a manifest of Kubernetes, and back
completion    ``launch completion``: the scripts for shells, and the completion of Bash
"""
