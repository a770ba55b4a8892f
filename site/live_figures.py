"""Live figures in a page: `{live}` places one, and a reader's touch starts Python in the browser.

    ```{live} slots
    :set: slots=8; lengths=1, 2, 3
    ```

The page holds the picture, its words and its table as computed here, so that nothing is missing where no script runs;
the files of site/live make it answer. Other builders show the words, and those that can, the picture.
"""

import html
import io
import json
import re
import shutil
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

import precompiled
import vendored
import wheel
from enginelab import explorations, plot
from enginelab.exploring import Choice, Complaint, Exploration, Picture
from inline_figures import foreign_colours, inline

LIVE = Path(__file__).with_name("live")
FOLDER = "_live"
STDLIB = "python_stdlib.zip"
LOADED = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", STDLIB)
OTHERS = ("text", "latex", "man", "texinfo")
NOTE = "The picture stands still here. Over the web, in a browser that runs scripts, it answers to your own numbers."
STYLE = LIVE.parent / "kernel" / "matplotlibrc"


class live_figure(nodes.General, nodes.Element):
    """One live figure. `page` and `picture` are HTML, with and without what scripts use; its children are its words."""


class Live(SphinxDirective):
    """`{live} NAME`, with other settings in `:set:` if the defaults do not suit the place."""

    required_arguments = 1
    option_spec = {"set": directives.unchanged_required}

    def run(self):
        name = self.arguments[0]
        try:
            exploration = explorations.find(name)
            settings = settings_of(self.options.get("set", ""), exploration)
            picture = exploration(settings)
        except (LookupError, Complaint, ValueError) as error:
            raise self.error(f"live figure {name!r}: {error}") from None
        earlier = self.env.temp_data.setdefault("live_figures", {})
        earlier[name] = earlier.get(name, 0) + 1
        key = name if earlier[name] == 1 else f"{name}-{earlier[name]}"
        svg = still(picture)
        if strange := foreign_colours(svg):
            raise self.error(f"live figure {name!r}: colours that plot.PALETTE does not name: {', '.join(strange)}")
        drawn = inline(svg, picture.words, f"live-{key}-")
        figure = live_figure(
            page=page_html(key, name, exploration, settings, picture, drawn),
            picture=f"<div>{_words(exploration, picture, drawn)}</div>",
        )
        figure += nodes.paragraph("", "", nodes.strong(text=exploration.title))
        figure += nodes.paragraph(text=picture.words)
        self.set_source_info(figure)
        return [figure]


def settings_of(text: str, exploration: Exploration) -> dict[str, str]:
    """The texts by control that `:set:` gives. Raises `ValueError` for what is no setting of this figure."""
    settings = {}
    for part in re.split(r";\s*|\s+(?=\w+=)", text.strip()):
        name, equals, value = part.partition("=")
        if part and (not equals or name.strip() not in {control.name for control in exploration.controls}):
            raise ValueError(f"{part!r} sets none of its controls")
        if part:
            settings[name.strip()] = value.strip()
    return settings


def still(picture: Picture) -> str:
    """The picture as an SVG document, the same for the same picture."""
    mpl.use("agg")
    axes = plot.picture(picture)
    try:
        with mpl.rc_context(fname=STYLE), io.StringIO() as file:
            axes[0].figure.savefig(file, format="svg", metadata={"Date": None})
            return file.getvalue()
    finally:
        plt.close(axes[0].figure)


def described(exploration: Exploration, settings: dict[str, str]) -> list[dict]:
    """The controls for the page's script; `value` is the text that a control has at first."""
    controls = []
    for control in exploration.controls:
        value = control.write(control.read(settings[control.name])) if control.name in settings else None
        told = {"kind": type(control).__name__, "name": control.name, "label": control.label, "unit": ""}
        if isinstance(control, Choice):
            told["options"] = control.options
        else:
            told |= {key: getattr(control, key) for key in ("unit", "minimum", "maximum", "step")}
        controls.append(told | {"value": control.write(control.default) if value is None else value})
    return controls


def page_html(key, name, exploration, settings, picture, drawn) -> str:
    """The figure as a page holds it; MEGABYTES stands where the size of Python goes."""
    about = {
        "name": name,
        "key": key,
        "controls": described(exploration, settings),
        "guess": exploration.guess and {"question": exploration.guess.question, "unit": exploration.guess.unit},
        "megabytes": "MEGABYTES",
    }
    # So that no text of a figure can end the element.
    data = json.dumps(about, ensure_ascii=False).replace("<", "\\u003c")
    return (
        f'<div class="live-figure" id="live-{key}" role="group" aria-labelledby="live-{key}-title">'
        f'<script type="application/json">{data}</script>'
        f"{_words(exploration, picture, drawn, f'live-{key}-title')}</div>"
    )


def _words(exploration: Exploration, picture: Picture, drawn: str, title_id: str = "") -> str:
    """Title, picture, words and table as HTML; with an id for the title, also what the page's script looks for."""
    title, words = html.escape(exploration.title), html.escape(picture.words)
    if not title_id:
        return f"<p><strong>{title}</strong></p>{drawn}<p>{words}</p>{_table(picture)}"
    return (
        f'<p class="live-title" id="{title_id}">{title}</p><p class="live-note">{NOTE}</p>'
        f'<div class="live-picture">{drawn}</div><p class="live-words">{words}</p>'
        f'<div class="live-table">{_table(picture)}</div>'
    )


def _table(picture: Picture) -> str:
    if not picture.header:
        return ""
    head = "".join(f'<th scope="col">{html.escape(text)}</th>' for text in picture.header)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in picture.rows)
    return f'<table class="table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


# --- the site -------------------------------------------------------------------------------------------------------


def _visit_html(writer, node):
    if writer.builder.name == "epub":
        writer.body.append(node["picture"])
    else:
        size = (Path(writer.builder.outdir) / FOLDER / "megabytes").read_text(encoding="utf-8")
        writer.body.append(node["page"].replace('"MEGABYTES"', size))
    raise nodes.SkipNode


def _visit_other(writer, node):
    """Other builders show the children: the title and the words."""


def place(folder: Path, root: Path) -> None:
    """Write what live figures load besides the vendored files: the scripts, and the library of the checkout `root`."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(LIVE.glob("*.*")):
        shutil.copyfile(path, folder / path.name)
    (folder / "enginelab.whl").write_bytes(wheel.build(root))
    packages = {package.name: package for package in vendored.read()}
    files = {name: content for name, content in vendored.contents(packages["pyodide"]).items() if name in LOADED}
    (folder / STDLIB).write_bytes(precompiled.standard_library(files))
    loaded = [len(content) for name, content in files.items() if name != STDLIB]
    loaded += [(folder / name).stat().st_size for name in (STDLIB, "enginelab.whl")]
    (folder / "megabytes").write_text(f"{sum(loaded) / 1e6:.0f}", encoding="utf-8")


def _place(app):
    if app.builder.name == "html":
        place(Path(app.outdir, FOLDER), Path(app.srcdir))


def _load_script(app, page, template, context, doctree):
    if app.builder.name == "html" and doctree is not None and any(doctree.findall(live_figure)):
        beside = context["pathto"]
        context["metatags"] = context.get("metatags", "") + (
            f'<link rel="stylesheet" href="{beside(f"{FOLDER}/live.css", 1)}" />'
            f'<script type="module" src="{beside(f"{FOLDER}/live_figures.js", 1)}"></script>\n'
        )


def setup(app):
    app.add_node(live_figure, html=(_visit_html, None), **dict.fromkeys(OTHERS, (_visit_other, _visit_other)))
    app.add_directive("live", Live)
    app.connect("builder-inited", _place)
    app.connect("html-page-context", _load_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
