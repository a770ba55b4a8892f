"""Cards and quiz in a browser: by keyboard alone, kept in the browser only, and whole without scripts."""

import json

import pytest

from enginelab import questions

from .conftest import PHONE

BANK = {question.id: question for question in questions.read()}
FOCUS = "(element => element.textContent.trim() || element.name || element.tagName)(document.activeElement)"


@pytest.fixture
def quiz(visit):
    """The quiz of a reader who has not been here before."""
    return visit("chapters/quiz.html").page


@pytest.fixture
def cards(visit):
    return visit("chapters/cards.html").page


def tab_to(page, words):
    """Press Tab until the focus is on what reads `words`, as somebody without a mouse does."""
    for _ in range(200):
        if page.evaluate(FOCUS) == words:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the Tab key does not reach {words!r}")


def begin(page, topic):
    """Start a round about a topic, from the box above the button."""
    page.locator(".quiz-screen select").first.select_option(topic)
    page.locator(".quiz-screen select").first.focus()
    tab_to(page, "Start")
    page.keyboard.press("Enter")


def asked(page):
    return BANK[page.locator(".quiz-screen form").get_attribute("data-question")]


def dealt(page):
    return BANK[page.locator(".card-face").get_attribute("data-question")]


def shown(text):
    """A text of the bank as a page shows it: code without its marks, and quotation marks as printers set them."""
    return text.replace("`", "").replace("'", "’")


def answer(page, question, right=True):
    """Answer the question on the screen by keyboard; the focus is on its first field."""
    assert page.evaluate("document.activeElement.matches('.quiz-screen input')")
    if question.kind == "number":
        page.keyboard.type(f"{question.right[0].number if right else 7777:g}")
    elif question.kind == "several":
        for option in question.options:
            if option.right == right:
                page.keyboard.press("Space")
            page.keyboard.press("Tab")
        page.keyboard.press("Shift+Tab")
    else:
        wanted = next(place for place, option in enumerate(question.options) if option.right == right)
        page.keyboard.press("Space")
        for _ in range(wanted):
            page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")


def test_a_whole_round_by_keyboard_with_every_kind_of_question(quiz):
    begin(quiz, "Continuous batching")
    kinds, missed = set(), 0
    for place in range(10):
        question = asked(quiz)
        kinds.add(question.kind)
        right = place % 3 != 0
        answer(quiz, question, right)
        said = quiz.locator(".quiz-said").inner_text()
        assert said.startswith("Right." if right else ("7777 is wrong" if question.kind == "number" else "Not right."))
        for option in question.options:
            assert shown(option.why) in shown(said)
        missed += not right
        assert quiz.evaluate(FOCUS) == ("Next" if place < 9 else "See the score")
        quiz.keyboard.press("Enter")
    assert kinds == {"one", "number"}
    assert quiz.evaluate(FOCUS) == f"{10 - missed} of 10 right."
    assert quiz.locator(".question-app td").all_inner_texts() == ["Continuous batching", str(10 - missed), "10"]
    assert quiz.locator(".quiz-missed").count() == missed
    tab_to(quiz, "Ask the missed ones again")
    quiz.keyboard.press("Enter")
    assert f"Question 1 of {missed}" in quiz.locator(".quiz-screen .card-where").inner_text()


def test_several_right_answers_and_an_answer_that_is_none(quiz):
    begin(quiz, "The field")
    while asked(quiz).kind != "several":
        answer(quiz, asked(quiz))
        quiz.keyboard.press("Enter")
    quiz.keyboard.press("Enter")
    assert quiz.locator(".quiz-said").inner_text() == "Choose an answer first."
    answer(quiz, asked(quiz))
    assert quiz.locator(".quiz-said").inner_text().startswith("Right.")


def test_a_number_as_people_type_it_and_what_is_none(quiz):
    round_of(quiz, "dynamo-prefill-demand")
    for typed in ("", "many", "6e4x", "12 or 8", "<b>", "1,2"):
        quiz.keyboard.press("ControlOrMeta+a")
        quiz.keyboard.type(typed)
        quiz.keyboard.press("Enter")
        said = quiz.locator(".quiz-said").inner_text()
        assert said.startswith("1.2 is wrong" if typed == "1,2" else "Type a number in digits, such as 12."), typed
    for typed in ("60000", "60,000", " 60 000 ", "60000.0"):
        round_of(quiz, "dynamo-prefill-demand")
        quiz.keyboard.type(typed)
        quiz.keyboard.press("Enter")
        assert quiz.locator(".quiz-said").inner_text().startswith("Right."), typed


def test_a_share_may_be_rounded(quiz):
    round_of(quiz, "batching-static-utilization")
    quiz.keyboard.type("52.1 %")
    quiz.keyboard.press("Enter")
    assert quiz.locator(".quiz-said").inner_text().startswith("Right.")


def round_of(page, *ids):
    """A round of these questions, as the browser would have kept it."""
    keep(page, "quiz", {"right": {}, "round": {"ids": ids, "given": []}})
    page.locator(".question-app button", has_text="Go on").press("Enter")


def complaints(visited):
    """What went wrong, except that a picture was still on its way when the page was loaded again."""
    return [words for words in visited.said if "ERR_ABORTED" not in words]


def keep(page, name, value):
    text = value if isinstance(value, str) else json.dumps(value)
    page.evaluate("([key, text]) => localStorage.setItem(key, text)", [f"enginelab.{name}", text])
    page.reload()


def test_a_round_goes_on_after_the_page_was_closed_and_can_be_forgotten(quiz):
    begin(quiz, "Choosing")
    answer(quiz, asked(quiz))
    quiz.reload()
    tab_to(quiz, "Go on with question 2 of 5")
    assert "answered 1 of" in quiz.locator(".question-count").inner_text()
    tab_to(quiz, "Forget my progress")
    quiz.keyboard.press("Enter")
    assert quiz.evaluate("localStorage.getItem('enginelab.quiz')") is None
    assert quiz.locator(".quiz-said").inner_text() == "Your progress is forgotten."
    assert quiz.locator(".question-app button", has_text="Go on").count() == 0


HELD = ["not json", "[]", "null", '{"right": 5, "round": 7}', '{"round": {"ids": ["gone"], "given": []}}',
        '{"round": {"ids": ["trt-when"], "given": [3]}}', '{"round": {"ids": ["trt-when"], "given": [[]]}}',
        '{"round": {"ids": ["trt-when", "trt-when"], "given": [["<img src=x>"]]}}',
        '{"ratings": {"gone": 3, "trt-when": "x"}}']  # fmt: skip


@pytest.mark.parametrize("name", ["cards", "quiz"])
def test_what_does_not_fit_any_more_is_left_aside(visit, name):
    visited = visit(f"chapters/{name}.html")
    for held in HELD:
        keep(visited.page, name, held)
        assert visited.page.locator(".question-app").is_visible(), held
        assert visited.page.locator(".question-app button", has_text="Go on").count() == 0, held
    assert complaints(visited) == []


def test_ratings_that_are_none_are_left_aside_whatever_they_are_called(visit):
    visited = visit("chapters/cards.html")
    for held in ("constructor", "toString", "3", [3], 4, None):
        keep(visited.page, "cards", {"ratings": dict.fromkeys(BANK, held)})
        assert f"{len(BANK)} not rated. Progress is kept" in visited.page.locator(".question-count").inner_text()
    assert complaints(visited) == []


def test_two_tabs_keep_each_others_progress(visit):
    first = visit("chapters/cards.html")
    second = first.page.context.new_page()
    second.goto(first.page.url)
    for page, rating in ((first.page, "3"), (second, "1")):
        page.locator(".card-face").focus()
        if page is second:
            page.keyboard.press("ArrowRight")
        page.keyboard.press("Space")
        page.keyboard.press(rating)
    kept = json.loads(second.evaluate("localStorage.getItem('enginelab.cards')"))
    assert sorted(kept["ratings"].values()) == [1, 3]


def test_a_browser_that_keeps_nothing(visit):
    page = visit("chapters/quiz.html").page
    page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } })")
    page.reload()
    assert "keeps nothing" in page.locator(".question-count").inner_text()
    begin(page, "Choosing")
    answer(page, asked(page))
    assert page.locator(".quiz-said").inner_text().startswith("Right.")


def test_cards_turn_move_and_are_rated_by_keyboard(cards):
    cards.locator(".card-face").focus()
    first = dealt(cards)
    cards.keyboard.press("3")  # Nobody rates a card before seeing its answer.
    cards.keyboard.press("Space")
    back = cards.locator(".card-text").inner_text()
    assert all(shown(option.why) in shown(back) for option in first.right)
    cards.keyboard.press("3")
    assert json.loads(cards.evaluate("localStorage.getItem('enginelab.cards')")) == {"ratings": {first.id: 3}}
    assert "Question 2 of" in cards.locator(".card-where").inner_text()
    cards.keyboard.press("ArrowLeft")
    assert "Question 1 of" in cards.locator(".card-where").inner_text()
    assert cards.locator(".card-where").inner_text().endswith("known")
    cards.keyboard.press("ArrowRight")
    cards.keyboard.press("Space")
    cards.locator(".question-app button", has_text="1 Not yet").press("Enter")
    assert cards.locator(".question-count").inner_text().startswith("1 known, 0 nearly, 1 not yet")
    assert cards.evaluate("document.activeElement.className") == "card-face"
    cards.get_by_label("Only what I do not know yet").check()
    assert f"of {len(BANK) - 1}" in cards.locator(".card-where").inner_text()
    cards.locator(".question-app button", has_text="Forget my ratings").press("Enter")
    assert cards.evaluate("localStorage.getItem('enginelab.cards')") is None


def test_the_order_of_cards_follows_topic_and_seed(cards):
    def first_five(seed, topic=""):
        cards.locator(".question-app select").select_option(topic)
        cards.get_by_label("Order").fill(str(seed))
        cards.locator(".card-face").focus()
        found = []
        for _ in range(5):
            found.append(dealt(cards).id)
            cards.keyboard.press("ArrowRight")
        return found

    assert first_five(0) == list(BANK)[:5]
    sevens = first_five(7)
    assert sevens != first_five(8) and sevens == first_five(7)
    assert {BANK[id].topic for id in first_five(7, "SGLang")} == {"SGLang"}


@pytest.mark.parametrize("name", ["cards", "quiz"])
def test_without_scripts_every_question_is_there_and_its_answer_opens(visit, name):
    page = visit(f"chapters/{name}.html", scripts=False).page
    assert not page.locator(".question-app").is_visible()
    assert page.locator(".question .ask").count() == len(BANK)
    first = page.locator(".question details").first
    assert not first.locator("ul").is_visible()
    first.locator("summary").press("Enter")
    assert first.locator("ul").is_visible()


@pytest.mark.parametrize("name", ["cards", "quiz"])
def test_on_paper_the_answers_are_open_and_the_controls_gone(visit, name):
    page = visit(f"chapters/{name}.html").page
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert not page.locator(".question-app").is_visible()
    assert page.locator(".question details[open]").count() == len(BANK)
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator(".question details[open]").count() == 0


@pytest.mark.parametrize("id", ["sglang-eagle", "trt-fraction", "dynamo-doubled"])
def test_on_a_phone_nothing_is_wider_than_the_screen(visit, id):
    visited = visit("chapters/quiz.html", size=PHONE, theme="dark")
    page = visited.page
    round_of(page, id)
    answer(page, BANK[id], right=False)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    inner = page.locator(".question-app").evaluate("element => element.scrollWidth - element.clientWidth")
    assert inner <= 0
    assert complaints(visited) == [] and visited.outside == []
