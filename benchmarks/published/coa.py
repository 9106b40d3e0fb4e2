"""COA, convex optimization for linear query processing."""

from __future__ import annotations

from published.tables import Omitted, Paper

__all__ = ["PAPER"]

PAPER = Paper(
    "coa",
    "COA",
    "G. Yuan, Y. Yang, Z. Zhang and Z. Hao. Convex optimization for linear query processing under "
    "approximate differential privacy. KDD 2016.",
    omitted=(
        Omitted("Table 1", "notation, no figure."),
        Omitted(
            "Values of the curves of figures 1 to 14",
            "they are pictures; the text has no value of any curve. COA's printed errors in HDMM's Table 5 "
            "stand on [that page](hdmm.md).",
        ),
        Omitted(
            "Figures 2 to 5 beyond n = 512, figures 6 to 9 at n = 512, figure 10 at m = n = 1,024",
            "run here up to n = 512, at n = 64 with m from 32 to 8,192, and at m = n = 128: ESM, LRM and COA "
            "take minutes beyond, on one thread. What a Newton step takes for larger n stands above.",
        ),
        Omitted(
            "Figures 11 to 13: seconds of LRM, ESM and COA by m and n",
            "not drawn: their seconds are those of MATLAB programs on a PC of four cores. What a Newton step "
            "of ours takes by n stands above.",
        ),
        Omitted(
            "The data sets of figure 1's test error (Search Log, Net Trace, Social Network, UCI Adult)",
            "noise is added to strategies that no data decided, and estimates are linear: the error is the "
            "same on every table.",
        ),
        Omitted(
            "Figure 14: COA against DAWA",
            "DAWA's error depends on the table; `matrixdp compare --public-table` measures `dawa` on a table "
            "of one's own.",
        ),
        Omitted(
            "When Algorithm 1 has converged",
            "is not printed. Here it ends where the objective falls by less than 1e-5 of itself, as in the "
            "program that its authors published, which however stops after 10 steps at the latest, adds "
            "theta times the mean of the diagonal and not theta, and shortens steps by 0.5 for the printed "
            "0.1. On prefixes 10 steps are not near the end: see figure 1 above.",
        ),
        Omitted(
            "ESM's constants",
            "are not in the text, and its own paper (Yuan et al., TODS 2015) was not read. Of "
            "`exponential-smoothing` these are as the text has them: program 6, the maximum smoothed as "
            "mu log sum exp(v / mu), non-monotone spectral projected gradients, a set of positive definite "
            "matrices. mu = 0.01, the start at the identity, the least eigenvalue of 1e-6, acceptance "
            "against the worst of 10 objectives and 400 steps are ours and unchecked: its rows show what "
            "such a descent does, and no more.",
        ),
        Omitted(
            "LRM's answers where W = B L does not hold at its end",
            "are those of B L: wrong by (W - B L) x, whatever the noise. Here what L lost is measured beside "
            "it, so that every query is answered without such an error (Figure 10 at s = 1).",
        ),
    ),
    shown="its figures, run again; no value of them is printed",
)
