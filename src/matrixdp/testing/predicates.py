"""What every family of predicates must do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Categorical, Integers
from matrixdp.queries import Predicates, Spans
from matrixdp.testing.agreement import probes, require, require_close

__all__ = ["check_predicates"]

Array = NDArray[np.float64]

#: Sets of at most so many entries are compared with their dense matrix, larger ones with products of vectors.
_DENSE_ENTRIES = 1 << 22
_PROBES = 4


def _fixed(array: Array) -> Array:
    """Return an array that a method that writes into its arguments cannot use."""
    array.setflags(write=False)
    return array


def check_predicates(predicates: Predicates, size: int) -> None:
    """Check that a predicate set keeps its contract on an attribute with so many values.

    Every method is compared with the rows that ``apply`` gives: a closed form that a family has for its
    Gram matrix, its quadratic forms, its squares or its column sums must be that of its queries.

    Parameters
    ----------
    predicates : Predicates
        The set; it must fit the size.
    size : int
        The number of values. 3, 64 and 600 between them take every path of the library.

    Raises
    ------
    AssertionError
        Names the method that disagrees.

    Examples
    --------
    >>> from matrixdp.queries import AllRanges
    >>> check_predicates(AllRanges(), 64)

    A family whose Gram matrix is not that of its queries is found:

    >>> class Wrong(AllRanges):
    ...     def gram(self, size):
    ...         return np.eye(size)
    >>> try:
    ...     check_predicates(Wrong(), 3)
    ... except AssertionError as error:
    ...     print(error)
    gram: not that of the queries: 2.21249 is off by 1.09
    """
    predicates.check(size)
    count = predicates.count(size)
    require(count == int(count) >= 1, f"count: {count!r}; expected an integer of at least 1")
    require(hash(predicates.key(size)) == hash(predicates.key(size)), "key: its hash changes")
    require(predicates.key(size) == predicates.key(size), "key: it differs from itself")
    require(predicates.text_key(size) == predicates.text_key(size), "text_key: it differs from itself")
    left, right = (_fixed(half) for half in probes(2, size, _PROBES))
    from_left, from_right = predicates.apply(left), predicates.apply(right)
    require(from_left.shape == (count, _PROBES), f"apply: shape {from_left.shape}; count says {count}")
    mixed = predicates.apply(_fixed(left - 2 * right))
    require_close(mixed, from_left - 2 * from_right, "apply: not linear")
    gram, form = predicates.gram(size), _fixed(left @ right.T)
    require_close(gram, gram.T, "gram: not symmetric")
    norms = np.einsum("ia,ij,ja->a", left, gram, left)
    require_close(norms, (from_left**2).sum(axis=0), "gram: not that of the queries")
    products = np.einsum("ij,ij->i", from_left, from_right)
    require_close(predicates.quadratic(form), products, "quadratic: not that of the queries")
    squares = predicates.squares(size)
    require_close(squares, predicates.quadratic(_fixed(np.eye(size))), "squares: not those of the queries")
    require_close(squares.sum(), np.trace(gram), "squares: their sum is not the trace of gram")
    known = predicates.symmetric(size)
    if known is not None:
        require_close(gram, known[0] * np.eye(size) + known[1], "symmetric: not gram")
    if count * size <= _DENSE_ENTRIES:
        _check_dense(predicates, size)
    spans = predicates.spans(size)
    require(len(spans.first) == len(spans.last) == len(spans.whole) == count, "spans: not one for each query")
    for attribute in (Integers("code", 0, size - 1), Categorical("code", tuple(map(str, range(size))))):
        texts = predicates.describe(attribute)
        require(len(texts) == count, f"describe: {len(texts)} texts; count says {count}")
        require(all(isinstance(text, str) for text in texts), "describe: it gives what is no text")


def _check_dense(predicates: Predicates, size: int) -> None:
    """Compare every method with the dense matrix, whose columns are the images of unit vectors."""
    rows = predicates.apply(_fixed(np.eye(size)))
    require_close(predicates.rows(size), rows, "rows: not what apply gives")
    require_close(predicates.gram(size), rows.T @ rows, "gram: not that of the rows")
    require_close(predicates.squares(size), (rows**2).sum(axis=1), "squares: not those of the rows")
    for power in (1, 2):
        sums = (np.abs(rows) ** power).sum(axis=0)
        require_close(predicates.column_sums(size, power), sums, "column_sums: not those of the rows")
    spans, dense = predicates.spans(size), Spans.of_rows(rows)
    for name, own, expected in (("first", spans.first, dense.first), ("last", spans.last, dense.last)):
        require(bool((own == expected).all()), f"spans: {name} is not that of the rows")
    require(bool((spans.whole == dense.whole).all()), "spans: whole is not that of the rows")
    form = _fixed(probes(size, size))
    found = predicates.quadratic(form)
    require_close(found, ((rows @ form) * rows).sum(axis=1), "quadratic: not that of the rows")
