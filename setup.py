"""Add the lock files of ``launch setup`` to the package that reads them; pyproject.toml has everything else.

A checkout has them in requirements/ alone, where the launcher finds them too (``launch/environments/identity.py``).
"""

import os

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithLocks(build_py):
    """Copy the modules and the data of the packages, and the lock files."""

    def run(self) -> None:
        """Copy everything into ``build_lib``."""
        super().run()
        folder = os.path.join(self.build_lib, "launch", "environments")
        self.mkpath(folder)
        for name in ("tf1.lock", "tf2.lock"):
            self.copy_file(os.path.join("requirements", name), folder)


setup(cmdclass={"build_py": BuildWithLocks})
