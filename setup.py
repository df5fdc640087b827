"""Build a wheel whose packages lie in one folder of their own; pyproject.toml has everything else.

``launch_ps.py`` says why. The wheel also has the lock files of ``launch setup``, which a checkout has in requirements/
alone (``launch/environments/identity.py``).
"""

import os
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py

OWN = "launch_ps"
PACKAGES = ("cluster", "jobs", "launch")


class BuildInOneFolder(build_py):
    """Copy the modules and the data of the packages, and the lock files, into the folder that is ours alone."""

    def run(self) -> None:
        """Copy everything into ``build_lib``."""
        super().run()
        if getattr(self, "editable_mode", False):
            return
        own = os.path.join(self.build_lib, OWN)
        shutil.rmtree(own, ignore_errors=True)  # of an earlier build
        self.mkpath(own)
        for name in PACKAGES:
            shutil.move(os.path.join(self.build_lib, name), own)
        shutil.move(own + ".py", os.path.join(own, "__init__.py"))
        for name in ("tf1.lock", "tf2.lock"):
            self.copy_file(os.path.join("requirements", name), os.path.join(own, "launch", "environments"))
        with open(own + ".pth", "w", encoding="utf-8") as path:
            path.write(OWN + "\n")


setup(cmdclass={"build_py": BuildInOneFolder})
