"""When a run stops: the rule in plain Python, on the values that it watches."""

from collections.abc import Sequence


def epochs_until(values: Sequence[float], tol: float, patience: int) -> int | None:
    """Epochs after which a ranker with these values, one per epoch, stops; None if it does not.

    An epoch improves by the least value before it minus its own; the first has none before it and
    counts as an improvement. The ranker stops once ``patience`` epochs in a row improved by less
    than ``tol``.
    """
    in_a_row = 0
    for epoch in range(1, len(values)):
        improved = min(values[:epoch]) - values[epoch]
        in_a_row = in_a_row + 1 if improved < tol else 0
        if in_a_row == patience:
            return epoch + 1
    return None
