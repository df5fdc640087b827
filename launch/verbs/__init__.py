"""The command line: a module a verb, each a few statements; ``launch.cli`` joins the verbs.

options          what verbs share: FILE, the options that change how it is read, and their completion at the Tab key
bash_completion  the script of Bash's Tab key
init             write a first job
up               train what FILE describes
verify           compare the distributed run with one process
plan             show what would run where
check            find what would keep a run from starting
setup            build the hosts' Python environments
status           show how a run is
runs             list the runs on the hosts of FILE
logs             print tasks' logs
board            open TensorBoard
metrics          serve a status to Prometheus
view             serve the page of a run, live
report           print the page of a run
restart          restart tasks
drain            take tasks out of a run, or back
export           write a SavedModel
down             end a run
sweep            find what earlier runs left
prune            remove past runs and unused code
diagnose         collect everything that may explain a run
import_hosts     ``launch import``: a hosts file from another launcher's list
import_tfjob     ``launch import tfjob``: a hosts file from a manifest of Kubernetes
manifest         print a manifest for Kubernetes
completion       ``launch completion``: the shell's script
"""
