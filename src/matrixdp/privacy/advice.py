"""What is said of a budget that is allowed, and still likely to be a mistake."""

from fractions import Fraction

from matrixdp.privacy.budget import Budget

__all__ = ["LARGE_DELTA", "delta_warnings"]

LARGE_DELTA = Fraction(1, 10**4)


def delta_warnings(budget: Budget, records: int | None = None) -> tuple[str, ...]:
    """Return what is wrong with the delta of a budget, in sentences.

    Parameters
    ----------
    budget : Budget
        What may be spent.
    records : int, optional
        How many records the table has, as declared without looking at it.

    Examples
    --------
    >>> from matrixdp.privacy import Budget
    >>> delta_warnings(Budget(epsilon=1, delta=1e-6), 50_000)
    ()
    >>> for sentence in delta_warnings(Budget(epsilon=1, delta=1e-4), 50_000):
    ...     print(sentence[:57])
    delta is 0.0001, above 1 / 50,000, one over the number of
    """
    delta = budget.delta
    if delta is None:
        return ()
    bounds = (
        []
        if records is None
        else [(Fraction(1, records), f"1 / {records:,}, one over the number of records")]
    )
    bounds.append((LARGE_DELTA, "0.0001"))
    above = [words for bound, words in bounds if delta > bound]
    if not above:
        return ()
    return (
        f"delta is {float(delta):.3g}, above {' and above '.join(above)}: with about that probability the "
        "promise may fail altogether, for each person; 1e-6 or less is usual",
    )
