"""Mixtures: every table is that of one dense table, never negative, and holds no cell that cannot be."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.model import Mixture
from matrixdp.testing import dense_queries
from tests.model.builders import a_mixture

DOMAIN = mdp.Domain(
    {
        "age": {"min": 0, "max": 5},
        "adult": {"of": ["age"], "map": {0: "no", 1: "no", 2: "no", 3: "yes", 4: "yes", 5: "yes"}},
        "sex": ["f", "m"],
        "kind": {"of": ["sex", "age"], "codes": [0, 0, 1, 1, 1, 1, 2, 2, 2, 0, 0, 0], "categories": [*"xyz"]},
    }
)
PLAIN = mdp.Domain({"a": 3, "b": 4, "c": 2, "d": 3})


def dense(own):
    """The whole table of a mixture, straight from its definition, shape of the domain."""
    table = np.zeros(own.domain.shape)
    names = list(own.factors)
    for codes in np.ndindex(*(own.domain[name].size for name in names)):
        value = dict(zip(names, codes, strict=True))
        for name in own.domain.names:
            if name not in value:
                derivation = own.domain[name].codebook.derivation
                place = 0
                for parent in derivation.of:
                    place = place * own.domain[parent].size + value[parent]
                value[name] = derivation.codes[place]
        shares = np.prod([own.factors[name][:, value[name]] for name in names], axis=0)
        table[tuple(value[name] for name in own.domain.names)] += own.total * own.weights @ shares
    return table


@pytest.mark.parametrize("domain", [DOMAIN, PLAIN], ids=["derived", "plain"])
def test_tables_and_answers_are_those_of_one_table(domain):
    own = a_mixture(domain)
    table = dense(own)
    for group in mdp.kway([0, 1, 2, 3, 4]).expand(domain):
        others = tuple(axis for axis, name in enumerate(domain.names) if name not in group.attributes)
        np.testing.assert_allclose(own.marginal(group.attributes), table.sum(axis=others), atol=1e-10)
    first, second, third = domain.names[:3]
    rows = np.random.default_rng(2).normal(size=(3, domain.cells([second, third])))
    entries = [
        mdp.kway([0, 1, 2, 3], {"categorical": "identity", "numeric": "range"}),
        mdp.dense(rows, [second, third]),
        mdp.product({first: "prefix", third: "total"}),
    ]
    for group in (group for entry in entries for group in entry.expand(domain)):
        np.testing.assert_allclose(
            own.answers(group), dense_queries(group, domain) @ table.ravel(), atol=1e-9
        )


def test_an_average_has_the_mean_of_every_table():
    several = [a_mixture(PLAIN, 2 + seed, 40.0 + seed, seed) for seed in range(3)]
    average = Mixture.average(several)
    assert average.components == 9
    for names in (("a", "b"), ("c",), (), ("a", "b", "c", "d")):
        mean = np.mean([own.marginal(names) for own in several], axis=0)
        np.testing.assert_allclose(average.marginal(names), mean)


def test_arrays_are_kept_from_changes():
    with pytest.raises(ValueError, match="read-only"):
        a_mixture(PLAIN).weights[0] = 1.0
