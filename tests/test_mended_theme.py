"""Names for what the stock theme leaves nameless."""

import mended_theme

ARROW = (
    '<li><a class="reference internal" href="a.html">\n2. Batching</a><details open="open"><summary>'
    '<span class="toctree-toggle" role="presentation"><i class="fa-solid fa-chevron-down"></i></span></summary>'
)


def test_an_arrow_says_whose_sections_it_opens_and_a_folded_cell_its_own_words():
    page = ARROW + '<summary aria-label="Toggle hidden content">\n<p>show</p></summary>'
    better = mended_theme.mended(page)
    assert '<summary aria-label="Sections of 2. Batching"><span class="toctree-toggle"' in better
    assert "<summary>\n<p>show</p></summary>" in better
    assert mended_theme.mended(better) == better


def test_the_arrow_of_the_page_itself_has_a_name_too():
    itself = ARROW.replace('class="reference internal" href="a.html"', 'class="current reference internal" href="#"')
    assert 'aria-label="Sections of 2. Batching"' in mended_theme.mended(itself)


def test_pages_are_mended_in_place_and_a_theme_that_changed_is_noticed(tmp_path):
    page = tmp_path / "a.html"
    page.write_text(ARROW)
    assert mended_theme.mend(tmp_path) == [] and "Sections of 2. Batching" in page.read_text()
    page.write_text('<button class="toctree-toggle"></button>')
    assert "mended_theme.py" in mended_theme.mend(tmp_path)[0]
