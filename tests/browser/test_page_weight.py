"""The reckoning of a page's first view is not too low: a browser loads nothing that it leaves out."""

from urllib.parse import urlsplit

import pytest

import page_weight


@pytest.mark.parametrize(
    "page", ["index.html", "search.html", "chapters/02_continuous_batching.html", "chapters/atlas.html"]
)
def test_what_a_browser_loads_has_been_counted(page, built_site, visit):
    assert (built_site / page).is_file()
    seen = visit(page)
    seen.page.wait_for_function("document.fonts.status === 'loaded'")
    loaded = {urlsplit(address).path for address in seen.loaded if not address.startswith("data:")}
    assert page in loaded and loaded - page_weight.of_page(built_site, built_site / page).parts.keys() == set()


def test_every_page_is_within_the_budget(built_site):
    weights = page_weight.of_site(built_site)
    assert weights and page_weight.report(weights, heaviest=0)[1:] == []
