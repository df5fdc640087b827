"""The launcher's requests to an agent, and its answers: dataclasses whose fields are the keys of the JSON.

run_request       one host's part of a run, and each of its tasks
run_plan          the lead's knowledge of its run
container         the request to run tasks in a container
retention         the rule by which hosts remove past runs
verb_requests     the requests of the short-lived verbs, and the answer of ``graph``
host_facts        the facts of a host that check and diagnose collect
check_request     the conversation of a check
diagnose_request  the conversation of a diagnosis
flight            the newest spans of tasks
"""
