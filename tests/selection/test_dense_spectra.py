"""Large problems without structure: one eigendecomposition a step, here or on a device, which is checked."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from matrixdp.queries import Prefix, Width
from matrixdp.selection.gram import quadratic, solve_gram, spectra
from matrixdp.selection.gram.chains import chain_of
from matrixdp.selection.gram.spectra import DenseSpectra, device_found, eigh_on

Array = NDArray[np.float64]
SIZE = 33
RNG = np.random.default_rng(5)
SHARES = RNG.dirichlet(np.full(SIZE, 3.0))
MEAN = np.eye(SIZE) - SHARES[:, None]
WITHOUT_STRUCTURE = Width(5).gram(SIZE) + np.diag(1.0 + RNG.random(SIZE))


class _Tensor:
    """An array on a device, as PyTorch has them."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def to(self, device: str) -> _Tensor:
        DEVICES.append(device)
        return self

    def cpu(self) -> _Tensor:
        return self

    def numpy(self) -> Array:
        return self.array


DEVICES: list[str] = []


def _right(tensor: _Tensor) -> tuple[_Tensor, _Tensor]:
    values, vectors = np.linalg.eigh(tensor.array)
    return _Tensor(values), _Tensor(vectors)


def _wrong_values(tensor: _Tensor) -> tuple[_Tensor, _Tensor]:
    values, vectors = _right(tensor)
    return _Tensor(values.array * 1.001), vectors


def _wrong_vectors(tensor: _Tensor) -> tuple[_Tensor, _Tensor]:
    values, vectors = _right(tensor)
    return values, _Tensor(vectors.array * np.r_[1.01, np.ones(SIZE - 1)])


def _out_of_memory(tensor: _Tensor) -> tuple[_Tensor, _Tensor]:
    raise RuntimeError("CUDA out of memory")


def _device(monkeypatch: pytest.MonkeyPatch, eigh: object) -> None:
    torch = ModuleType("torch")
    torch.from_numpy, torch.linalg = _Tensor, SimpleNamespace(eigh=eigh)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    DEVICES.clear()


@pytest.mark.parametrize("gram", [Prefix().gram(SIZE), MEAN.T @ Prefix().gram(SIZE) @ MEAN])
def test_the_spectrum_is_that_of_the_chain(gram: Array) -> None:
    chain = chain_of(gram)
    assert chain is not None
    ours, theirs = DenseSpectra(gram).spectrum(SHARES), chain.spectrum(SHARES)
    np.testing.assert_allclose(np.sort(ours.roots), np.sort(theirs.roots), rtol=1e-9)
    for spectrum in (ours, theirs):
        np.testing.assert_allclose(spectrum.loadings @ spectrum.loadings.T, gram, atol=1e-10 * gram.max())


def test_large_problems_are_solved_by_the_fixed_point(monkeypatch: pytest.MonkeyPatch) -> None:
    best = solve_gram(WITHOUT_STRUCTURE, gap=1e-7)
    monkeypatch.setattr(quadratic, "LARGE_CELLS", SIZE - 1)
    found = solve_gram(WITHOUT_STRUCTURE, gap=1e-7)
    assert best.bound is not None
    assert found.bound is not None
    assert found.bound <= best.loss * (1 + 1e-12)
    assert best.bound <= found.loss <= found.bound * (1 + 1e-3)
    inverse = np.linalg.inv(found.rows)
    assert np.einsum("ia,ia->", inverse, WITHOUT_STRUCTURE @ inverse) == pytest.approx(found.loss, rel=1e-9)


def test_a_device_is_used_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    best = solve_gram(WITHOUT_STRUCTURE, gap=1e-6)
    _device(monkeypatch, _right)
    monkeypatch.setattr(quadratic, "MIN_DEVICE_CELLS", SIZE)
    monkeypatch.setattr(quadratic, "device_found", lambda: "cuda")
    found = solve_gram(WITHOUT_STRUCTURE, gap=1e-6)
    assert set(DEVICES) == {"cuda"}
    assert found.loss == pytest.approx(best.loss, rel=1.1e-6)
    monkeypatch.setattr(quadratic, "_MOST_STEPS", 2)  # what it does not reach, Newton's steps do
    again = solve_gram(WITHOUT_STRUCTURE, gap=1e-6)
    assert again.loss == pytest.approx(best.loss, rel=1.1e-6)


@pytest.mark.parametrize("eigh", [_wrong_values, _wrong_vectors, _out_of_memory])
def test_what_a_device_returns_is_checked(monkeypatch: pytest.MonkeyPatch, eigh: object) -> None:
    _device(monkeypatch, eigh)
    assert eigh_on("cuda", WITHOUT_STRUCTURE) is None
    expected = DenseSpectra(WITHOUT_STRUCTURE).spectrum(SHARES)
    found = DenseSpectra(WITHOUT_STRUCTURE, "cuda").spectrum(SHARES)
    np.testing.assert_array_equal(found.roots, expected.roots)


def test_what_a_device_returns_is_taken_where_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    _device(monkeypatch, _right)
    found = eigh_on("cuda", WITHOUT_STRUCTURE)
    assert found is not None
    np.testing.assert_allclose((found[1] * found[0]) @ found[1].T, WITHOUT_STRUCTURE, atol=1e-12)


def test_a_device_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = SimpleNamespace(is_available=lambda: True)
    torch = ModuleType("torch")
    torch.cuda = cuda  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    found = {}
    for installed, available in ((False, True), (True, False), (True, True)):
        monkeypatch.setattr(spectra, "find_spec", lambda _, there=installed: object() if there else None)
        cuda.is_available = lambda there=available: there
        device_found.cache_clear()
        found[installed, available] = device_found()
    device_found.cache_clear()
    assert found == {(False, True): None, (True, False): None, (True, True): "cuda"}
