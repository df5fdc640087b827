"""The command line: the verbs, which ``launch.cli`` joins. A module has one verb, or a few that belong together.

options       what verbs share: FILE, the options that change how it is read, and their completion at the Tab key
init          write a first job
up            train what FILE describes
verify        compare the distributed run with one process
plan          show what would run where
check         find what would keep a run from starting
setup         build the hosts' Python environments
status        show how a run is
runs          list the runs on the hosts of FILE
logs          print tasks' logs
board         open TensorBoard
metrics       serve a status to Prometheus
page          ``launch report`` and ``launch view``: print the page of a run, or serve it live
task_changes  ``launch restart`` and ``launch drain``: restart tasks, or take them out of a run, or back
export        write a SavedModel
down          end a run
sweep         find what earlier runs left
prune         remove past runs and unused code
diagnose      collect everything that may explain a run
import_hosts  ``launch import``: a hosts file from another launcher's list
tfjob         ``launch import tfjob`` and ``launch manifest``: a hosts file from a manifest of Kubernetes, and back
completion    ``launch completion``: the shell's script, and what Bash's does
"""
