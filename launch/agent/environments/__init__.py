"""The Python environments of this host, for ``launch setup``.

environment  one environment, known by a hash of its contents
builder      builds one, as a lock file says
wheel_store  packages that the launcher sent
pip_errors   what pip prints, in words
"""
