"""The Python environments of this host, for ``launch setup``.

environment  one environment, known by a hash of its contents
builder      builds one from a lock file
wheel_store  packages that the launcher sent
pip_errors   pip's stages and failures, in words
"""
