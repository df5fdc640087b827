"""The launcher's requests to an agent, and the agent's answers: dataclasses whose fields are the keys of the JSON.

run_request       one host's part of a run, each of its tasks, and the whole run for the lead
verb_table        every verb, and its function on the host
typed_verbs       verbs that the launcher calls with a dataclass, with the types of their requests and answers
verb_requests     the requests of the short-lived verbs, and the answer of ``graph``
host_facts        the facts of a host that check and diagnose collect
check_request     the conversation of a check
diagnose_request  the conversation of a diagnosis
flight            the newest spans of tasks
"""
