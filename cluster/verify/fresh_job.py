"""A job's functions once more, from its file: what it has made once, such as a layer, belongs to one graph."""

import functools
import importlib.util
import sys
from typing import Any, Mapping

from cluster.job import Job


def fresh(job: Job, args: Mapping[str, Any]) -> Job:
    """Return the same job, with ``args`` bound, after its file was executed again.

    Modules that the file imports are not. Functions that are not those of one file are used as they are.
    """
    module = sys.modules.get(getattr(_function(job.model), "__module__", ""))
    spec = getattr(module, "__spec__", None)
    own = {"inputs": job.inputs, "model": job.model, "optimizer": job.optimizer}
    is_file = all(getattr(module, name, None) is _function(each) for name, each in own.items())
    if spec is None or spec.loader is None or not is_file:
        return job
    again = importlib.util.module_from_spec(spec)
    with job.blame():
        spec.loader.exec_module(again)
    return Job.from_module(again).with_args(args)


def _function(given: Any) -> Any:
    while isinstance(given, functools.partial):
        given = given.func
    return given
