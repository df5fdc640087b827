"""The command ``launch`` of an installed launcher: our packages come first on its path, whatever else is installed.

A wheel has ``cluster``, ``jobs`` and ``launch`` in a folder of its own, ``launch_ps``, so that it overwrites and hides
no package of these ordinary names. This file is that folder's ``__init__.py``. ``launch_ps.pth`` puts the folder at the
end of the environment's path: ``import cluster`` works as in a checkout, unless another package has the name.
"""

import os
import sys


def main() -> None:
    """Run the command line."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from launch.__main__ import main

    main()
