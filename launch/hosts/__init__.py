"""Talk to one program on one host, over SSH, by Slurm or here. ``conversation`` is where to begin.

channel        a program on a host, with its stdin and stdout; its command, quoted for a shell
local_host     this machine as a host: programs are subprocesses
rpc            run one verb of the agent; ship the code first where it is missing
conversation   turn all that a channel may do into answers, or into that host's problem
answer_shapes  the shape of each verb's answer, and the check of a value against it
bundle         pack the code that a host needs; a bundle is known by its hash
job_files      list the files of a job's folder, also behind links
"""
