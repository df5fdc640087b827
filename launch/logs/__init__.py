"""``launch logs``: print the task logs of all hosts by time.

task_logs   read the logs from every host, and merge them
folding     print equal lines of many tasks as one
"""
