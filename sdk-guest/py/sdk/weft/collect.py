"""How a step that takes a list waits for its events."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class All:
    """Runs the step once, with all events."""


@dataclasses.dataclass(frozen=True)
class Take:
    """Runs the step once, at the n-th arrival, with the first n events."""

    n: int

    def __post_init__(self):
        if not isinstance(self.n, int) or self.n < 1:
            raise ValueError("Take(n) needs an int of at least 1")


@dataclasses.dataclass(frozen=True)
class Collect:
    """Marks a parameter: Annotated[list[E], Collect(Take(2))]."""

    cardinality: object = dataclasses.field(default_factory=All)
