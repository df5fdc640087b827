"""A model as its author wrote it: a job's three functions, with a name, and what it cannot be tried with."""

import functools
import inspect
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Mapping, Tuple

from tests.differential.data import dense

Args = Mapping[str, Any]
Model = Callable[..., Any]
RUNTIMES = ("tf1", "tf2")


@dataclass(frozen=True)
class Author:
    """A job under a name.

    ``same``: every tower must have the same examples, as what the model does depends on which are in its batch.
    ``alone``: it draws numbers in an order that only one worker with one tower keeps.
    ``half``: it sums gradients in float16, those of each tower by themselves.
    ``settings``: what it needs of ``train`` besides the way in which it is tried.
    """

    name: str
    model: Model
    inputs: Callable[..., Any]
    optimizer: Callable[[Args], Any]
    about: str
    same: bool = False
    alone: bool = False
    half: bool = False
    runtimes: Tuple[str, ...] = RUNTIMES
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What a person calls it: a recipe has no name of its own."""
        return self.about if self.name.startswith("{") else self.name


AUTHORS: Dict[str, Author] = {}


def author(
    optimizer: Callable[[Args], Any], inputs: Callable[..., Any] = dense, **limits: Any
) -> Callable[[Model], Model]:
    """Registers a model, under its function's name, with what trains it."""

    def register(model: Model) -> Model:
        about = (model.__doc__ or "").strip().splitlines()[0]
        AUTHORS[model.__name__] = Author(model.__name__, model, inputs, optimizer, about, **limits)
        return model

    return register


def named(name: str) -> Author:
    """The author of that name, or the one whose recipe or construction it is."""
    if name.startswith('{"construction"'):
        from tests.differential.constructions import models

        return models.composed(name)
    if name.startswith("{"):
        from tests.differential.recipes import composed

        return composed(name)
    import tests.differential.models  # noqa: F401  (it registers them)

    return AUTHORS[name]


def every() -> Dict[str, Author]:
    """All authors by name, in the order in which they are written."""
    import tests.differential.models  # noqa: F401

    return AUTHORS


def bound(author: Author, args: Args, training: bool = True) -> Callable[..., Any]:
    """The model with the parameters ``args`` and ``training``, where it has them."""
    asked = inspect.signature(author.model).parameters
    values = {"args": args, "training": training}
    return functools.partial(author.model, **{name: value for name, value in values.items() if name in asked})
