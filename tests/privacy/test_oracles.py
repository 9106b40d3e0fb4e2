"""Two independent libraries of privacy accounting say the same of a cost as we do."""

import warnings
from fractions import Fraction
from functools import reduce

import opendp.prelude as opendp
import pytest
from dp_accounting import gaussian_mechanism
from dp_accounting.dp_event import GaussianDpEvent
from dp_accounting.pld import privacy_loss_distribution as loss_distribution
from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost
from matrixdp.privacy import Budget, delta_of, epsilon_of
from matrixdp.privacy.conversions import largest_mu

POINTS = [(mu, delta) for mu in (0.05, 0.25, 1.0, 2.5, 6.0) for delta in (1e-3, 1e-6, 1e-10)]
DELTA = Fraction(1, 10**6)


@pytest.fixture(scope="module")
def measurements():
    """OpenDP's mechanisms on one exact count."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        opendp.enable_features("contrib", "floating-point")
    space = opendp.atom_domain(T=int), opendp.absolute_distance(T=float)
    return {
        GAUSSIAN: lambda scale: opendp.m.make_gaussian(*space, scale=scale),
        LAPLACE: lambda scale: opendp.m.make_laplace(*space, scale=scale),
    }


@pytest.mark.parametrize(("mu", "delta"), POINTS)
def test_the_gaussian_curve_is_that_of_dp_accounting(mu, delta):
    expected = gaussian_mechanism.get_epsilon_gaussian(1 / mu, delta)
    assert float(epsilon_of(mu, delta)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1, 1e-6), (4, 1e-9), (0.01, 0.1), (10, 0.5)])
def test_the_noise_for_a_budget_is_that_of_dp_accounting(epsilon, delta):
    sigma = gaussian_mechanism.get_sigma_gaussian(epsilon, delta)
    assert float(largest_mu(Fraction(epsilon), Fraction(delta))) == pytest.approx(1 / sigma, rel=1e-6)


@pytest.mark.parametrize(("mu", "delta"), POINTS)
def test_the_exact_curve_lies_below_the_bounds_through_renyi_divergences(mu, delta, measurements):
    accountant = RdpAccountant()
    accountant.compose(GaussianDpEvent(1 / mu))
    exact = float(epsilon_of(mu, delta))
    assert exact <= accountant.get_epsilon(delta)
    private = opendp.c.make_zCDP_to_approxDP(measurements[GAUSSIAN](1 / mu))
    through = private.map(1.0)
    assert exact <= through.epsilon(delta)
    assert float(delta_of(mu, exact)) <= through.delta(exact) * (1 + 1e-9)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("scale", [0.75, 2.0, 13.5])
def test_the_cost_of_one_count_is_that_of_opendp(noise, scale, measurements):
    workload = mdp.Workload(mdp.Domain({"one": 1}), mdp.marginals(1))
    (part,) = mdp.select(workload, noise=noise.name).selection.plan.parts
    cost = noise.exact_cost([(noise.power_sum(part), Fraction(scale))])
    promise = noise.promise(cost, Budget(epsilon=1, delta=DELTA), DELTA)
    measured = measurements[noise](scale)
    if noise is LAPLACE:
        assert float(promise.pure_epsilon or 0) == pytest.approx(measured.map(1.0), rel=1e-12)
        measured = opendp.c.make_pureDP_to_zCDP(measured)
    assert float(promise.rho) == pytest.approx(measured.map(1.0), rel=1e-12)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_the_statement_of_a_release_covers_the_composition_of_its_parts(noise):
    domain = mdp.Domain({"a": 4, "b": 3, "c": range(6)})
    strategy = mdp.select(mdp.Workload(domain, mdp.marginals([1, 2])), noise=noise.name)
    table = {"a": [0, 1], "b": [2, 0], "c": [5, 3]}
    budget = Budget(epsilon=0.8) if noise is LAPLACE else Budget(rho=0.1)
    measurement = strategy.measure(table, budget).measurement
    statement = strategy.measure(table, budget).reconstruct().statement
    losses = []
    for part, scale in zip(measurement.plan.parts, measurement.scales, strict=True):
        sensitivity = float(noise.power_sum(part)) ** (1 / noise.norm)
        law = getattr(loss_distribution, f"from_{noise}_mechanism")
        losses.append(law(float(scale.exact), sensitivity))
    composed = reduce(lambda one, other: one.compose(other), losses)
    numerical = composed.get_epsilon_for_delta(float(DELTA))
    stated = statement.epsilon_at_reference_delta
    if noise is GAUSSIAN:
        # both are the exact curve; the other library's discretization errs upwards by less than 1 %
        assert numerical * 0.99 <= stated <= numerical * (1 + 1e-9)
    else:
        assert numerical <= stated * (1 + 1e-3)
        assert float(composed.get_epsilon_for_delta(0)) <= float(statement.pure_epsilon or 0) * (1 + 1e-3)


def test_a_cost_that_is_understated_by_a_percent_is_seen():
    honest = Cost(Fraction(1), GAUSSIAN)
    short = Cost(Fraction(99, 100), GAUSSIAN)
    reference = gaussian_mechanism.get_epsilon_gaussian(1.0, float(DELTA))
    told = [float(GAUSSIAN.promise(cost, Budget(rho=1), DELTA).epsilon) for cost in (honest, short)]
    assert told[0] == pytest.approx(reference, rel=1e-6)
    assert told[1] != pytest.approx(reference, rel=1e-3)
