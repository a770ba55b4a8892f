"""Where the site lives, as far as the build is told: buttons that open a page elsewhere, and what links to it show.

The repository's address comes from the surroundings (GitHub Actions, or the checkout's own remote), so a fork's site
opens the fork's notebooks with no edit; where there is no such address, there is no button. SITE_URL is the address
that the site will have; the workflow gets it from GitHub Pages. What a page says about itself to those who link to it
needs that address, and without it is left out.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import quote

from docutils import nodes
from matplotlib.figure import Figure

from enginelab import batching, plot

GITHUB = "https://github.com"
"""The one host whose repositories Colab opens, and Binder by its short form."""
REMOTE = re.compile(r"(?:https://(?:[^@/]+@)?|ssh://git@|git@)github\.com[/:]([\w.-]+)/([\w.-]+?)(?:\.git)?/?")
COLAB, BINDER = "https://colab.research.google.com", "https://mybinder.org"
CARD, CARD_SIZE = "card.png", (1200, 630)
"""The picture that a link to the site shows: its name among the static files, and its pixels."""
CARD_WORDS = "vLLM, SGLang, TensorRT-LLM and NVIDIA Dynamo: a course that runs"


@dataclass(frozen=True)
class Repository:
    """A repository on GitHub, and the branch that its readers get."""

    owner: str
    name: str
    branch: str


def repository(surroundings: dict[str, str], root: Path) -> Repository | None:
    """The repository that this checkout stands for, or None.

    surroundings: environment variables, of which GitHub Actions sets GITHUB_REPOSITORY and its like.
    root: the checkout, whose remote `origin` counts where those are not set.
    """
    if slug := surroundings.get("GITHUB_REPOSITORY"):
        owner, _, name = slug.partition("/")
        if surroundings.get("GITHUB_SERVER_URL", GITHUB) != GITHUB or not name:
            return None
        # a pull request's own branch may live in another repository
        branch = surroundings.get("GITHUB_BASE_REF") or surroundings.get("GITHUB_REF_NAME") or "main"
        return Repository(owner, name, branch)
    found = REMOTE.fullmatch(git_says(root, "remote", "get-url", "origin"))
    if not found:
        return None
    default = git_says(root, "symbolic-ref", "--short", "refs/remotes/origin/HEAD").removeprefix("origin/")
    return Repository(found[1], found[2], default or "main")


def git_says(root: Path, *words: str) -> str:
    """What git says about a checkout, or nothing where there is no git, no checkout or no answer."""
    try:
        asked = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""


def commit_time(root: Path) -> str:
    """When the checkout's commit was made, in seconds since 1970 as SOURCE_DATE_EPOCH has it, or nothing."""
    return git_says(root, "log", "-1", "--format=%ct")


def opener(repository: Repository, source: str) -> dict | None:
    """The theme's button to open `source`, a path in the repository, elsewhere: a lab on Colab, a chapter on Binder."""
    owner, name, branch = (quote(part, safe="") for part in (repository.owner, repository.name, repository.branch))
    if source.startswith("labs/") and source.endswith(".ipynb"):
        service, icon = "Colab", "_static/images/logo_colab.png"
        url = f"{COLAB}/github/{owner}/{name}/blob/{branch}/{quote(source)}"
    elif source.startswith("chapters/") and source.endswith(".md"):
        service, icon = "Binder", "_static/images/logo_binder.svg"
        # .binder/postBuild makes the notebook.
        notebook = source.removesuffix(".md") + ".ipynb"
        url = f"{BINDER}/v2/gh/{owner}/{name}/{branch}?urlpath={quote(f'lab/tree/{notebook}', safe='')}"
    else:
        return None
    link = {"type": "link", "url": url, "text": service, "tooltip": f"Open this notebook on {service}", "icon": icon}
    words = {"tooltip": "Open this notebook elsewhere", "icon": "fas fa-rocket", "label": "launch-buttons"}
    return {"type": "group", **words, "buttons": [link]}


def tags(title: str, description: str, page: str = "", site: str = "") -> str:
    """What a page says about itself to searchers and to those who show links to it, as tags of its head.

    page, site: their addresses on the web, where they are known; only then can a picture be named.
    """
    told = {"og:type": "article", "og:title": title, "og:description": description}
    if site:
        told |= {"og:url": page, "og:image": f"{site}_static/{CARD}", "og:image:alt": CARD_WORDS}
        told |= {"og:image:width": str(CARD_SIZE[0]), "og:image:height": str(CARD_SIZE[1])}
    lines = [f'<meta property="{name}" content="{escape(value)}" />' for name, value in told.items() if value]
    if description:
        lines.insert(0, f'<meta name="description" content="{escape(description)}" />')
    if site:
        lines.append('<meta name="twitter:card" content="summary_large_image" />')
    return "\n".join(lines)


def summary(doctree: nodes.document, longest: int = 200) -> str:
    """A page's first paragraph, for chapters the question that they answer, at most `longest` characters of it."""
    sections = doctree.findall(nodes.section)
    first = next((node for section in sections for node in section.children if isinstance(node, nodes.paragraph)), None)
    words = " ".join(first.astext().split()) if first is not None else ""
    return words if len(words) <= longest else words[: longest - 1].rpartition(" ")[0] + "…"


def draw_card(path: Path, title: str) -> None:
    """Draw the picture that a link to the site shows: the course's title over its first figure."""
    schedule = batching.continuous([2, 8, 3, 5, 3, 4], slots=4)
    figure = Figure(figsize=(CARD_SIZE[0] / 100, CARD_SIZE[1] / 100), dpi=100, facecolor=plot.PALETTE["paper"].light)
    ink = plot.PALETTE["ink"].light
    figure.text(0.06, 0.8, title, fontsize=46, fontweight="bold", color=ink)
    figure.text(0.06, 0.69, CARD_WORDS, fontsize=19, color=ink)
    axes = plot.slots(schedule, ax=figure.add_axes((0.1, 0.14, 0.84, 0.44)))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, format="png", facecolor=figure.get_facecolor())


def _read_surroundings(app, config):
    site = os.environ.get("SITE_URL", "").strip()
    # also what Sphinx makes each page's canonical address of
    config.html_baseurl = f"{site.rstrip('/')}/" if site.startswith(("https://", "http://")) else ""
    found = repository(dict(os.environ), Path(app.srcdir))
    config.published_from = (found.owner, found.name, found.branch) if found else ()


def _add_opener(app, page, template, context, doctree):
    if app.config.published_from and doctree is not None and app.builder.name == "html" and "header_buttons" in context:
        source = Path(app.env.doc2path(page)).relative_to(app.srcdir).as_posix()
        if found := opener(Repository(*app.config.published_from), source):
            context["header_buttons"].insert(0, found)


def _add_tags(app, page, template, context, doctree):
    if doctree is not None and app.builder.name == "html":
        site = app.config.html_baseurl
        address = site + app.builder.get_target_uri(page) if site else ""
        told = tags(app.env.titles[page].astext(), summary(doctree), address, site)
        context["metatags"] = f"{context.get('metatags', '')}\n{told}"


def _write_card(app, failure):
    if failure is None and app.config.html_baseurl and app.builder.name == "html":
        draw_card(Path(app.outdir, "_static", CARD), app.config.project)


def setup(app):
    app.add_config_value("published_from", (), "html", types=(tuple,))
    app.connect("config-inited", _read_surroundings)
    # After the theme's own buttons.
    app.connect("html-page-context", _add_opener, priority=502)
    app.connect("html-page-context", _add_tags)
    app.connect("build-finished", _write_card)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
