"""``launch diagnose``: collect, in one archive, evidence that may explain the state of a run.

collect   ask all hosts under one deadline
symptoms  find symptoms in the hosts' answers, and put the newest steps of all tasks on one time line
summary   describe the symptoms in words, and pack all files into an archive that only its owner can read
"""
