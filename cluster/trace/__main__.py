"""Draw a trace: python -m cluster.trace step_100.worker_1.json > step.svg"""

import json
import sys
from pathlib import Path

from cluster.trace.chrome_format import picture

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"expected the file of one trace, found {len(sys.argv) - 1} arguments; {__doc__}")
    sys.stdout.write(picture(json.loads(Path(sys.argv[1]).read_text())))
