"""Communicate with one program on one host: over SSH, by Slurm, or on this machine. Begin with ``conversation``.

channel        a program on a host, with its stdin and stdout; commands, quoted for a shell
local_host     this machine as a host: programs are subprocesses
rpc            run one verb of the agent; ship the code first to a host that lacks it
relay          a connection to a port of a host, through a program on that host
retry          further attempts, with pauses, after a failure that may be temporary
closing        wait for processes on this machine that end because their stdin is closed
conversation   turn the lines and failures of a channel into answers, or into the host's problem
answer_shapes  the shape of each verb's answer, and the check of a value against it
bundle         pack the code that a host needs; a hash identifies each bundle
job_files      list the files of a job's folder, including the targets of links
"""
