"""What everything is compared with is plain TensorFlow: it trains where nothing of this project can be imported."""

import json
import subprocess
import sys

from tests.differential.constructions.axes import Construction
from tests.differential.constructions.manners import Drawn, Manner
from tests.support import ROOT

PROGRAM = """
import json, sys

class Refusing:
    def find_spec(self, name, *_):
        if name.split(".")[0] in ("cluster", "launch", "jobs"):
            raise ImportError(f"{name} is refused")

sys.meta_path.insert(0, Refusing())
from tests.differential import reference
from tests.differential.authors import every
from tests.differential.constructions import plain

authors = every()  # all are imported
request = json.loads(sys.argv[1])
trained = [reference.train(authors["no_decay"], request["args"], request["batch"]), plain.train(request)]
print(json.dumps([reference.moved(each) for each in trained]))
try:
    import cluster
except ImportError as error:
    print(error)
"""
DRAWN = Drawn(0, Construction("by_hand", update="update_ops", scope="absolute", wrapper="regularized"), Manner())


def test_references_train_where_this_project_cannot_be_imported() -> None:
    argv = [sys.executable, "-W", "ignore", "-c", PROGRAM, json.dumps(DRAWN.reference())]
    ended = subprocess.run(argv, cwd=str(ROOT), stdout=subprocess.PIPE, text=True, check=True)
    *_, moved, refused = ended.stdout.splitlines()
    assert json.loads(moved) == [["b", "v", "w"], ["a/w", "ab/w", "b", "n", "v"]]
    assert refused == "cluster is refused"
