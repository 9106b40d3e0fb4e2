"""Pictures within a page."""

import re

from matrixdp.pictures.style import new_figure
from matrixdp.report.tables import inline_svg


def drawing(name, words="words"):
    figure = new_figure(3, 2)
    axes = figure.add_subplot()
    axes.plot([1, 2, 3], [0.123456789, 2, 3], "o-", label='a <b> & "c"')
    axes.imshow([[1, 2], [3, 4]], interpolation="none")
    axes.legend()
    return inline_svg(figure, name, words)


def test_two_pictures_of_a_page_share_no_names():
    names = [set(re.findall(r'id="([^"]+)"', drawing(name))) for name in ("p0", "p1")]
    assert all(names)
    assert not names[0] & names[1]
    text = drawing("p0")
    used = set(re.findall(r'href="#([^"]+)"', text)) | set(re.findall(r"url\(#([^)]+)\)", text))
    assert used == names[0]


def test_nothing_is_styled_within_and_nothing_comes_from_outside():
    text = drawing("p0")
    assert "style" not in text
    assert "DOCTYPE" not in text
    assert set(re.findall(r'href="([^#"]{5})', text)) == {"data:"}
    assert set(re.findall(r"https?://[^\"]+", text)) == {"http://www.w3.org/2000/svg"}
    assert 'a &lt;b&gt; &amp; "c"' in text
    assert max(len(number) for number in re.findall(r"\d+\.(\d+)", text.split("base64")[0])) <= 6


def test_words_for_a_screen_reader_are_escaped():
    assert 'aria-label="&lt;i&gt; &quot;q&quot;"' in drawing("p0", '<i> "q"')


def test_the_same_picture_is_the_same_text():
    assert drawing("p0") == drawing("p0")
