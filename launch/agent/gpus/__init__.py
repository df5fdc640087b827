"""Which GPUs this host has, what they do, and who holds them.

nvidia_smi   what the driver is asked, and how its answer is read
assignment   which GPUs there are, and which of them a task gets
booking      GPUs held by a run, so that no other gets them
memory       whose memory is on them
utilisation  how busy and how full they are
state        what they are doing, asked of driver and runs
"""
