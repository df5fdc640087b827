"""The Python environments of this host, for ``launch setup``.

environment  one environment, known by a hash of its contents
wheel_store  packages that the launcher sent
pip_build    builds one from a lock file with pip, whose stages and failures it puts into words
"""
