"""Make the output of programs fit to be shown.

plain_text  without what a terminal would obey
masking     without the values of secrets
redaction   without what only looks like a secret, too
"""
