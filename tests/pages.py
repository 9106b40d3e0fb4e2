"""What a browser would find in a page or a cell of a notebook."""

import html.parser

#: Names that mean harm, to a page, to a terminal, to a formula and to a legend.
HOSTILE = ["<script>alert(1)</script>", '" onload="alert(2)', "&amp;\x1b[1m", "$x_y$", "_plain"]


class Page(html.parser.HTMLParser):
    """What a browser would find: names and attributes of elements, tables, texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.words: list[str] = []
        self.rows: list[list[str]] = []
        #: Of each table, the margin beside each cell.
        self.margins: dict[str, list[list[str]]] = {}
        self._beside: list[list[str]] = []
        self._cell = self._small = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "table":
            self.rows, self._beside = [], []
            if (name := dict(attrs).get("data-name")) is not None:
                self.tables[name], self.margins[name] = self.rows, self._beside
        self._small = tag == "small"
        self._cell = tag in ("td", "th")
        if tag == "tr":
            self.rows.append([])
            self._beside.append([])
        if self._cell and self.rows:
            self.rows[-1].append("")
            self._beside[-1].append("")

    def handle_endtag(self, tag):
        if tag in ("td", "th", "tbody", "table", "small"):
            self._cell = self._small = False

    def handle_data(self, data):
        self.words.append(data)
        if self._cell and self.rows:
            self.rows[-1][-1] += data.strip()
        elif self._small and self.rows and self.rows[-1]:
            self._beside[-1][-1] += data.strip()

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())
