"""How a step that takes a list waits for its events."""


class All:
    """Runs the step once, with all events."""


class Take:
    """Runs the step once, at the n-th arrival, with the first n events."""

    def __init__(self, n):
        if not isinstance(n, int) or n < 1:
            raise ValueError("Take(n) needs an int of at least 1")
        self.n = n


class Collect:
    """Marks a parameter: Annotated[list[E], Collect(Take(2))]."""

    def __init__(self, cardinality=None):
        self.cardinality = All() if cardinality is None else cardinality
