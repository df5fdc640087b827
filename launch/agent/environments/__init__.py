"""The Python environments of this host, for ``launch setup``.

environment  one environment, identified by a hash of its contents
wheel_store  the packages that the launcher has sent
pip_build    the build of an environment from a lock file with pip, and texts about its stages and failures
"""
