"""Small questions to the trees of expressions."""

from __future__ import annotations

from sqlglot import exp

__all__ = ["conjuncts", "enclosing", "unwrapped"]


def unwrapped(node: exp.Expr) -> exp.Expr:
    """Return an expression without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def enclosing(node: exp.Expr) -> exp.Expr | None:
    """Return what an expression stands in, parentheses aside; None for a whole one."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return parent


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """Return the conditions that must all hold for a condition to hold, in their order."""
    found: list[exp.Expr] = []
    rest = [node]
    while rest:
        part = unwrapped(rest.pop())
        inner = unwrapped(part.this) if isinstance(part, exp.Not) else None
        if isinstance(part, exp.And):
            rest += [part.expression, part.this]
        elif isinstance(inner, exp.Not):
            rest.append(inner.this)
        elif isinstance(inner, exp.Or):
            rest += [exp.Not(this=exp.paren(side.copy())) for side in (inner.expression, inner.this)]
        else:
            found.append(part)
    return found
