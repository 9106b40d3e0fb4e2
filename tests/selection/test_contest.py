import matrixdp as mdp
from matrixdp.noise import LAPLACE
from matrixdp.selection import select
from matrixdp.selection.auto import hope_of
from matrixdp.selection.compose.union import unmerged_loss


def test_a_workload_is_tried_fast_once_for_its_hope_and_its_search(monkeypatch):
    tried = []

    def counted(workload, noise):
        tried.append(noise)
        return unmerged_loss(workload, noise)

    monkeypatch.setattr("matrixdp.selection.mechanisms.contest.unmerged_loss", counted)
    entries = [mdp.product(a="prefix", b="identity"), mdp.product(c="prefix")]
    workload = mdp.Workload(mdp.Domain({"a": 6, "b": 3, "c": 5}), *entries)
    hope = hope_of(workload, LAPLACE)
    assert hope <= select(workload, noise=LAPLACE).certificate.loss
    assert len(tried) == 1
    assert hope_of(workload, LAPLACE) == hope
    select(workload, noise=LAPLACE, seed=3)  # another search
    assert len(tried) == 2
