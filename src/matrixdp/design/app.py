"""The web application: one page on this machine alone, for who has its address.

It is reached at 127.0.0.1 under a random token. Requests under another host's name, from pages of other
sites, without the token, or with more than a megabyte, are rejected; one file is written, which the command
line named, and the folder of a release that was confirmed. The text of the specification is all that a
design is: the page keeps it, and each change of it.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
import socket
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, final

from matrixdp.design.checkout import Checkout
from matrixdp.design.desk import Desk, Records, read
from matrixdp.design.text import REMOVED, changed
from matrixdp.errors import DEBUG, MatrixDPError, SpecificationError, explained, needing
from matrixdp.forms import is_unicode
from matrixdp.quality import LETTERS
from matrixdp.report import report_release
from matrixdp.report.html import environment, policy, resource
from matrixdp.report.outlook import outlook_page
from matrixdp.specification import parse_yaml
from matrixdp.storage.archive import write_whole
from matrixdp.texts import ENGLISH

if TYPE_CHECKING:
    from flask import Flask, Response

HOST = "127.0.0.1"
#: A specification of this many bytes is taken, and so many open pages are kept.
_MOST_BYTES, _MOST_PAGES = 1_000_000, 8
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@final
@dataclass
class Design:
    """What the command line opened: the file that is written, and what it begins with where there is none.

    Parameters
    ----------
    file : path
        The specification.
    draft : str
        The text where the file is not there yet.
    records : Records
        What tables are judged on.
    token : str
        The secret part of the address.
    """

    file: Path
    draft: str
    records: Records
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    desks: OrderedDict[str, Desk] = field(default_factory=OrderedDict)
    checkout: Checkout = field(init=False)
    _lock: Any = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.file = self.file.resolve()  # paths in it are relative to where it is, not to a link
        self.checkout = Checkout(self.file)

    def desk(self, page: str) -> Desk:
        """Return the desk of an open page; that of the page which is idle longest goes."""
        with self._lock:
            desk = self.desks.setdefault(page, Desk(self.file, self.records))
            self.desks.move_to_end(page)
            while len(self.desks) > _MOST_PAGES:
                self.desks.popitem(last=False)[1].close()
            return desk

    def on_disk(self) -> tuple[str, str]:
        """Return the text of the file and a digest of it; both empty where there is none.

        A file that is not UTF-8 is refused: it would be saved as another.
        """
        try:
            held = self.file.read_bytes()
            text = held.decode("utf-8-sig").replace("\r\n", "\n")
        except FileNotFoundError:
            return "", ""
        except UnicodeDecodeError:
            found, expected = "text that is not UTF-8", "a YAML file in UTF-8"
            raise SpecificationError.at((self.file.name,), found, expected, code="bad-yaml") from None
        return text, hashlib.sha256(held).hexdigest()

    def save(self, text: str, seen: object) -> bool:
        """Write the file as a whole, with its line ends, unless others wrote what was not seen."""
        with self._lock:
            if self.on_disk()[1] != seen:
                return False
            held = self.file.read_bytes() if self.file.exists() else b""
            marked = "\ufeff" * held.startswith(b"\xef\xbb\xbf")
            write_whole(self.file, marked + text.replace("\n", "\r\n" if b"\r\n" in held else "\n"))
            return True


def application(design: Design, port: int) -> Flask:
    """Return the application that serves a design at a port."""
    with needing("Flask", "design", "design"):
        from flask import Flask, Response, abort, jsonify, request
        from werkzeug.exceptions import HTTPException

    app = Flask("matrixdp.design", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = _MOST_BYTES
    own, start = HOST if port == 80 else f"{HOST}:{port}", f"/{design.token}"  # as browsers write it
    style = resource("page.css") + resource("outlook.css") + resource("design.css")
    script = resource("design.js")
    allowed = f"{policy(style, script)}; connect-src 'self'; frame-ancestors 'none'"

    @app.before_request
    def guard() -> None:
        site, reads = request.headers.get("Sec-Fetch-Site", "none"), request.method in ("GET", "HEAD")
        if request.headers.get("Host") != own:
            abort(403, "another host than that of the page")
        # a link may lead here from anywhere; nothing else is asked from there
        follows = reads and request.headers.get("Sec-Fetch-Mode") == "navigate"
        if request.headers.get("Origin", f"http://{own}") != f"http://{own}":
            abort(403, "a request of another site")
        if site not in ("none", "same-origin") and not follows:
            abort(403, "a request of another site")
        given = request.path.split("/")[1]
        if not secrets.compare_digest(given.encode(), design.token.encode()):
            abort(404, "no page: the address is that which the program printed")

    @app.after_request
    def protect(response: Response) -> Response:
        response.headers.setdefault("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
        response.headers.update(_HEADERS)
        return response

    @app.errorhandler(HTTPException)
    def refuse(error: HTTPException) -> Response:
        return Response(f"{error.description}\n", error.code or 500, mimetype="text/plain")

    @app.errorhandler(Exception)
    def fail(error: Exception) -> Response:
        # without a traceback in the log, whose line names the address
        if os.environ.get(DEBUG):
            raise error
        return Response(f"{explained(error)}\n", 500, mimetype="text/plain")

    def asked() -> tuple[dict[str, Any], str | None, Desk]:
        """Return what a page sent, the text of its design, and its desk."""
        try:
            given = request.get_json()  # of nothing but JSON: forms can be sent from any site
        except RecursionError:
            abort(400, "values are nested too deeply")
        if not isinstance(given, dict):
            abort(400, "an object is expected")
        text, page = given.get("text"), given.get("page")
        if not isinstance(text, str | None) or not isinstance(page, str) or len(page) > 64:
            abort(400, "a text and the name of a page are expected")
        if text is not None and not is_unicode(text):
            abort(400, "a text without halves of characters is expected")
        return given, text, design.desk(page)

    @app.get(f"{start}/")
    def page() -> Response:
        made = environment(ENGLISH).get_template("design.html")
        name = design.file.name
        text = made.render(name=name, letters=LETTERS, style=style, script=script, on=design.records.option)
        return Response(text, headers={"Content-Security-Policy": allowed})

    @app.post(f"{start}/design")
    def show() -> Response:
        given, text, desk = asked()
        held, digest = design.on_disk()
        if text is None:
            text = held if digest else design.draft
        refused = None
        if given.get("changes") is not None:
            text, refused = _change(text, given["changes"], design.file.parent)
        if "kept" in given:
            desk.kept = given["kept"]
        shown = desk.show(text) | {"text": text, "refused": refused, "disk": digest}
        return jsonify(_plain(shown) | {"release": design.checkout.run})

    @app.post(f"{start}/save")
    def save() -> Response:
        given, text, _ = asked()
        if text is None:
            abort(400, "a text is expected")
        saved = design.save(text, given.get("seen"))
        return jsonify({"saved": saved, "disk": design.on_disk()[1]})

    @app.post(f"{start}/summary")
    def summary() -> Response:
        _, text, desk = asked()
        held, digest = design.on_disk()
        told: dict[str, Any] = {"refused": ""}
        try:
            nonce = secrets.token_urlsafe(16)
            told |= design.checkout.offer(text or "", held, digest, desk.outlook, nonce)
        except MatrixDPError as error:
            told["refused"] = str(error)
        return jsonify(told)

    @app.post(f"{start}/confirm")
    def confirm() -> Response:
        given, _, _ = asked()
        nonce, digest = given.get("nonce"), given.get("digest")
        if not (isinstance(nonce, str) and nonce and isinstance(digest, str)):
            abort(400, "the nonce and the digest of a summary are expected")
        refused = ""
        try:
            design.checkout.confirm(nonce, digest, design.on_disk()[1])
        except MatrixDPError as error:
            refused = str(error)
        return jsonify({"refused": refused, "release": design.checkout.run})

    @app.get(f"{start}/sheet")
    def sheet() -> Response:
        desk = design.desks.get(request.args.get("page", ""))
        if desk is None or desk.outlook is None:
            abort(404, "nothing is judged yet")
        return Response(outlook_page([(design.file.stem, desk.outlook)]), headers={
            "Content-Security-Policy": "frame-ancestors 'none'"  # the page has its own, as a file does
        })  # fmt: skip

    @app.get(f"{start}/report")
    def report() -> Response:
        run = design.checkout.run
        if run is None or not run["spent"]:
            abort(404, "nothing is released yet")
        try:
            text = report_release(design.checkout.folder)
        except MatrixDPError as error:
            abort(500, str(error))
        return Response(text, headers={"Content-Security-Policy": "frame-ancestors 'none'"})

    return app


def _plain(value: Any) -> Any:
    """Return values as JSON has them: what is no finite number there is a text."""
    if isinstance(value, Mapping):
        return {name: _plain(own) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _change(text: str, changes: Any, base: Path) -> tuple[str, dict[str, Any] | None]:
    """Return a text with all of some changes, or as it was, with why they were refused."""
    made, path = text, []
    try:
        for change in list(changes):
            path = list(change["path"])
            if not path or not all(isinstance(step, str | int) for step in path):
                raise TypeError
            value, written = change.get("value", REMOVED), change.get("written")
            made = changed(made, tuple(path), value, written=written)
    except MatrixDPError as error:
        return text, {"says": str(error), "path": path}
    except (TypeError, KeyError, AttributeError, RecursionError):
        return text, {"says": "the change cannot be read", "path": []}
    gone = any(not {"value", "written"} & change.keys() for change in changes)
    if gone and read(text, base)[2] is None:
        made = _without_the_unknown(made, base)
    if any(change.get("check") for change in changes):
        # what cannot be asked for is not added
        problem = read(made, base)[2]
        if problem is not None and problem["path"][:1] in (["workload"], ["targets"]):
            return text, {"says": problem["says"], "path": path}
    return made, None


def _without_the_unknown(text: str, base: Path) -> str:
    """Return a text without what asks for attributes, or bounds tables, that were removed from it."""
    while (problem := read(text, base)[2]) is not None and problem["code"] == "unknown-name":
        document: Any = parse_yaml(text).value
        gone: tuple[str | int, ...]
        match problem["path"]:
            case ["targets", name, *_]:
                gone = ("targets", name) if len(document["targets"]) > 1 else ("targets",)
            case ["workload", int(entry), "marginals", int(part), *_]:
                several = len(document["workload"][entry]["marginals"]) > 1
                gone = ("workload", entry, "marginals", part) if several else ("workload", entry)
            case ["workload", int(entry), *_]:
                gone = ("workload", entry)
            case _:
                break
        try:
            text = changed(text, gone)
        except MatrixDPError:
            break
    return text


def serve(design: Design, port: int = 0, opened: Callable[[str], None] = print) -> None:
    """Serve a design at a port of this machine, any free one for 0, until the program is stopped.

    Parameters
    ----------
    design : Design
    port : int
    opened : callable
        Is called with the address once the page is there.
    """
    with needing("waitress", "design", "design"):
        import waitress.server

    with socket.create_server((HOST, port)) as listening:
        port = listening.getsockname()[1]
        # idle connections of others on this machine end soon
        limits = {"max_request_body_size": _MOST_BYTES, "channel_timeout": 15, "cleanup_interval": 5}
        app = application(design, port)
        server = waitress.server.create_server(app, sockets=[listening], ident=None, **limits)
        opened(f"http://{HOST}:{port}/{design.token}/")
        server.run()
