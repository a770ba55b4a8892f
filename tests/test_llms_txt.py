"""llms.txt: every page of the table of contents, in its order, with what it is about."""

from docutils.core import publish_doctree

import llms_txt

TOC = """\
format: jb-book
root: index
parts:
  - caption: Read
    chapters:
      - file: a/one
        sections:
          - file: a/two
  - caption: Look up
    chapters:
      - file: a/three
"""


def test_pages_stand_in_their_order_with_relative_links_and_summaries(tmp_path):
    (tmp_path / "_toc.yml").write_text(TOC)
    titles = {"index": "Course", "a/one": "One", "a/two": "Two", "a/three": "Three"}
    summaries = {"index": "All of it?", "a/one": "What is one?", "a/two": "", "a/three": "What is three?"}
    assert llms_txt.listing(tmp_path / "_toc.yml", titles, summaries) == (
        "# Course\n\n> All of it?\n\n"
        "## Read\n\n- [One](a/one.html): What is one?\n  - [Two](a/two.html)\n\n"
        "## Look up\n\n- [Three](a/three.html): What is three?\n"
    )


def test_a_summary_is_the_first_paragraph_on_one_line_and_not_long():
    page = publish_doctree("Title\n=====\n\n*What is it,\nand why?*\n\nMore.\n")
    assert llms_txt.summary(page) == "What is it, and why?"
    words = llms_txt.summary(publish_doctree("word " * 100))
    assert len(words) <= llms_txt.LONGEST + 2 and words.endswith("word …")
    assert llms_txt.summary(publish_doctree("")) == ""
