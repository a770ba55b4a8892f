"""What is read out of a page: on pages as Sphinx writes them, small enough to check by eye."""

import os

import pytest

from enginelab.printed import NoBook, Printed, book, read, snippets


def block(text, classes="highlight"):
    return f'<div class="{classes}"><pre><span></span>{text}</pre></div>'


def inline(text, classes=""):
    return f'<p>Say <code class="{classes} docutils literal notranslate"><span class="pre">{text}</span></code>.</p>'


def words(html):
    return [" ".join(each.words) for each in read(html)]


def test_a_command_is_read_whole_over_its_continued_lines():
    html = block("<span>vllm</span> serve some/model <span>\\</span>\n  --max-num-seqs 4 \\\n  --enforce-eager\n")
    assert read(html) == [Printed(("vllm", "serve", "some/model", "--max-num-seqs", "4", "--enforce-eager"))]


@pytest.mark.parametrize(
    "line, command",
    [
        ("HF_HUB_OFFLINE=1 vllm serve m --port 80", "vllm serve m --port 80"),
        ("$ sglang serve --model-path m", "sglang serve --model-path m"),
        ("/usr/bin/python3 -m sglang.launch_server --tp 8", "python3 -m sglang.launch_server --tp 8"),
        ("python -m dynamo.frontend --router-mode kv &amp;", "python3 -m dynamo.frontend --router-mode kv"),
        ("vllm serve m --port 80 2>&1 | tee log", "vllm serve m --port 80"),
        ("docker run --gpus all image trtllm-serve m --port 1", "trtllm-serve m --port 1"),
        ("vllm serve m --speculative-config '{&quot;method&quot;: &quot;ngram&quot;}'",
         'vllm serve m --speculative-config {"method": "ngram"}'),
    ],
)  # fmt: skip
def test_a_command_is_found_behind_what_stands_before_it(line, command):
    assert words(block(line)) == [command]


@pytest.mark.parametrize(
    "line",
    ["pip install --no-deps vllm sglang", "uv pip install --torch-backend cpu vllm", "git clone --depth 1 x",
     "$ make x", "import sglang as sgl", "No trtllm-serve on this path", "vllm 0.32.0 is installed",
     "vllm/v1/core/sched/scheduler.py", "a--b and ---- and x/--y"],
)  # fmt: skip
def test_what_belongs_to_another_program_or_to_none_is_left_alone(line):
    assert words(block(line)) == []


def test_flags_alone_are_read_with_their_values_in_a_sentence_and_without_in_a_block():
    assert words(inline("--dtype half") + inline("-tp") + inline("half")) == ["--dtype half", "-tp"]
    assert words(block("--port: where to listen\nargs: [--model, x]")) == ["--port", "--model"]


def test_flags_of_another_program_that_the_page_starts_are_its_own():
    html = (
        block("docker run --rm --network host image jupyter --allow-root") + inline("--network host") + inline("--rm")
    )
    assert words(html) == []
    assert words(html + inline("--network none")) == ["--network none"]


def test_each_is_listed_once():
    assert words(inline("--port") + inline("--port") + inline("--host")) == ["--port", "--host"]


def test_the_code_of_a_cell_gives_flags_and_no_commands():
    cell = block('command = f"""\nvllm serve {model} --port {port}\n"""', "cell_input docutils container")
    assert words(cell) == ["--port"]
    assert words(block('run([python, "-m", "pip", "install",\n "--quiet", x])', "cell_input")) == []


def test_a_mark_on_a_span_a_block_or_a_cell_is_seen():
    assert read(inline("--old", "refused")) == [Printed(("--old",), "refused")]
    assert read(inline("--old", "by-vllm refused")) == [Printed(("--old",), "refused", "vllm")]
    assert read(block("--old", "tag_refused tag_by-sglang cell")) == [Printed(("--old",), "tried", "sglang")]
    assert read(block("vllm serve m --old", "tag_refused cell")) == [Printed(("vllm", "serve", "m", "--old"), "tried")]
    assert read(inline("--no-cache", "other")) == []
    assert read(inline("--old", "refused") + inline("--old"))[1] == Printed(("--old",))


@pytest.mark.parametrize(
    "line, program",
    [
        ("vllm bench serve --model m", "vllm bench"),
        ("python3 -m dynamo.mocker --model-path m", "python3 -m dynamo.mocker"),
        ("trtllm-serve m --port 1", "trtllm-serve"),
    ],
)
def test_a_command_knows_its_program(line, program):
    (found,) = read(block(line))
    assert found.is_command and found.program == program


def test_a_flag_has_no_program():
    (found,) = read(inline("--port 1"))
    assert not found.is_command and found.program == ""


def test_a_page_that_leaves_elements_open_is_read_to_its_end():
    html = f"<main><p>One<br><p>two <img src=x>{inline('--port')}<ul><li>a<li>{inline('--host')}</main>"
    assert words(html) == ["--port", "--host"]
    assert [each.kind for each in snippets(html)] == ["inline", "inline"]


def test_a_book_that_is_missing_or_stale_is_said_to_be(tmp_path):
    with pytest.raises(NoBook, match="missing: type `make book`"):
        book(tmp_path)
    page = tmp_path / "_build" / "html" / "chapters" / "one.html"
    source = tmp_path / "chapters" / "one.md"
    for file, text in ((page, inline("--port")), (source, "x")):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (page.parents[1] / "_static").mkdir()
    (page.parents[1] / "_static" / "x.html").write_text(inline("--not-a-page"))
    os.utime(source, (1, 1))
    assert book(tmp_path) == {"chapters/one": [Printed(("--port",))]}
    os.utime(page, (1, 1))
    os.utime(source, (2, 2))
    with pytest.raises(NoBook, match=r"older than chapters/one\.md: type `make book`"):
        book(tmp_path)
