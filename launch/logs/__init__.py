"""``launch logs``: print the task logs of all hosts in the order of time.

task_logs   read them from every host, and merge them
folding     print equal lines of many tasks as one
"""
