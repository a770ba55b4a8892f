"""A long table that a reader can narrow down: the table of a cell with the tag `filterable`.

The page holds the whole table; a script, loaded on such pages only, adds the controls. Without it nothing is missing.
"""


def _is_filterable(node) -> bool:
    return "tag_filterable" in getattr(node, "attributes", {}).get("classes", ())


def _load_script(app, page, template, context, doctree):
    if doctree is not None and any(doctree.findall(_is_filterable)):
        app.add_js_file("filterable_tables.js", loading_method="defer")


def setup(app):
    app.connect("html-page-context", _load_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
