"""A page on its way to paper: light, unfolded, without controls; and afterwards as it was."""


def test_a_dark_page_prints_light_and_unfolded(visit):
    page = visit("chapters/02_continuous_batching.html", theme="dark").page
    folds = page.locator("main details")
    open_before = folds.evaluate_all("all => all.filter((each) => each.open).length")
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("() => { window.dispatchEvent(new Event('beforeprint')); }")
    assert page.get_attribute("html", "data-theme") == "light"
    assert folds.evaluate_all("all => all.every((each) => each.open)")
    assert page.locator(".cell-button:visible, .cell-note:visible").count() == 0
    page.evaluate("() => { window.dispatchEvent(new Event('afterprint')); }")
    assert page.get_attribute("html", "data-theme") == "dark"
    assert folds.evaluate_all("all => all.filter((each) => each.open).length") == open_before


def test_a_page_becomes_a_pdf(visit):
    pdf = visit("chapters/02_continuous_batching.html").page.pdf()
    assert pdf.startswith(b"%PDF") and pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") >= 3


def test_no_line_of_code_runs_off_the_paper(visit):
    page = visit("chapters/02_continuous_batching.html").page
    page.set_viewport_size({"width": 700, "height": 1000})
    page.emulate_media(media="print")
    assert (
        page.locator("main pre").evaluate_all("all => all.filter((each) => each.scrollWidth > each.clientWidth)") == []
    )
