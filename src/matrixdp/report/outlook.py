"""What releases would be like, as one sheet: what is published, how accurate, under which guarantee."""

from __future__ import annotations

from collections.abc import Sequence

from matrixdp.quality import LETTERS, Outlook, by_title, heads
from matrixdp.report.html import environment, policy, resource
from matrixdp.texts import ENGLISH


def outlook_page(outlooks: Sequence[tuple[str, Outlook]]) -> str:
    """Return a sheet about what releases would be like, in HTML that needs nothing else.

    Parameters
    ----------
    outlooks : sequence of (str, Outlook)
        Each with the name of its specification; their tables stand side by side.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> asked = {"domain": {"sex": ["f", "m"]}, "workload": [{"marginals": [1]}], "privacy": {"mu": 1}}
    >>> page = outlook_page([("survey", mdp.plan(asked, records=1000))])
    >>> "survey" in page, "http" in page.replace("http-equiv", "")
    (True, False)
    """
    style = resource("page.css") + resource("outlook.css")
    return (
        environment(ENGLISH)
        .get_template("outlook.html")
        .render(
            outlooks=outlooks,
            rows=by_title(outlooks),
            heads=heads(outlooks),
            letters=LETTERS,
            columns=[(name, own) for name, one in outlooks for own in one.budgets],
            style=style,
            policy=policy(style, ""),
        )
    )
