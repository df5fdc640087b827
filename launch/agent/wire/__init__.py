"""The launcher's request to an agent: dataclasses whose fields are the keys of the JSON.

run_request    one host's part of a run, and each of its tasks
run_plan       the lead's knowledge of its run
verb_requests  the requests of the short-lived verbs
"""
