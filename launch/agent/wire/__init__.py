"""What the launcher asks an agent to run: dataclasses whose fields are the keys of the JSON.

run_request  what one host is asked to run, and each of its tasks
run_plan     what the lead knows of its run
"""
