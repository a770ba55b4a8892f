"""Which earlier statements of a notebook a cell needs: a backward slice over names. (The cells that a reader can edit.)

`site/runnable_cells.py` asks when the book is built whether a browser can run a cell, and `rerun` asks again in the
browser, for the cell as its reader left it.

A statement counts if it binds a needed name (as an assignment, an import, a loop or a definition does), stores into
what the name holds (`table[row] = 1`), or calls a method of it as a statement (`rows.append(1)`). A change inside a
called function is not seen, nor one of an imported module: no cell of the book hands its state on in that way.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

Names = frozenset[str]


@dataclass(frozen=True)
class Statement:
    """One statement of a cell; an import of several names is several statements.

    cell      the place of its cell among those given, from 0
    text      as it stands in the cell, without comments around it
    binds     names that it may bind
    settles   names that it certainly binds, whatever they were before
    changes   names whose object it may change
    uses      names whose earlier values it may read
    defines   whether there is a function or a class in it
    modules   what it imports, in full: the names of modules, or of what a module holds
    """

    cell: int
    text: str
    binds: Names
    settles: Names
    changes: Names
    uses: Names
    defines: bool
    modules: tuple[str, ...]


def needed(cells: Sequence[str], cell: str) -> tuple[Statement, ...]:
    """The statements of `cells`, in their order, that `cell` needs to have run before it. Raises `SyntaxError`."""
    earlier = [each for number, text in enumerate(cells) for each in statements(text, number)]
    imported = {name for each in earlier if each.modules for name in each.binds}
    behind = _behind(earlier)
    wanted, found = _with(behind, _exposed(ast.parse(cell).body)), []
    for statement in reversed(earlier):
        if wanted & (statement.binds | (statement.changes - imported)):
            found.append(statement)
            wanted = wanted - statement.settles | _with(behind, statement.uses)
    return tuple(reversed(found))


def _behind(earlier: Iterable[Statement]) -> dict[str, Names]:
    """For each name that may hold a function: what that function reads when it is called, and not when it is made."""
    behind: dict[str, Names] = {}
    for statement in earlier:
        read = statement.uses if statement.defines else frozenset()
        read |= frozenset().union(*(behind.get(name, ()) for name in statement.uses))
        if read:
            behind |= {name: behind.get(name, frozenset()) | read for name in statement.binds | statement.changes}
    return behind


def _with(behind: dict[str, Names], names: Names) -> Names:
    return names.union(*(behind.get(name, ()) for name in names))


def statements(cell: str, number: int = 0) -> tuple[Statement, ...]:
    """The statements of one cell. Raises `SyntaxError`."""
    return tuple(_statement(cell, node, number) for whole in ast.parse(cell).body for node in _single_imports(whole))


def _single_imports(node: ast.stmt) -> Iterator[ast.stmt]:
    """The same import once for each name, so that a needed module does not bring along one that no browser has."""
    if isinstance(node, ast.Import):
        yield from (ast.Import([alias]) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (ast.ImportFrom(node.module, [alias], node.level) for alias in node.names)
    else:
        yield node


def _statement(cell: str, node: ast.stmt, number: int) -> Statement:
    text = ast.unparse(node) if isinstance(node, ast.Import | ast.ImportFrom) else _text(cell, node)
    changes = frozenset(_changed(node))
    symbols = symtable.symtable(text, "<cell>", "exec").get_symbols()
    return Statement(
        cell=number,
        text=text,
        binds=frozenset(each.get_name() for each in symbols if each.is_assigned() or each.is_imported()),
        settles=_settled([node]) - changes,
        changes=changes,
        uses=_exposed([node]) | changes,
        defines=any(isinstance(each, ast.FunctionDef | ast.Lambda | ast.ClassDef) for each in ast.walk(node)),
        modules=tuple(_modules(node)),
    )


def _text(cell: str, node: ast.stmt) -> str:
    """The statement as it was written, with its decorators, for which `ast` has no segment."""
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    if first == node.lineno:
        return ast.get_source_segment(cell, node)
    return "\n".join(cell.splitlines()[first - 1 : node.end_lineno])


# --- names ----------------------------------------------------------------------------------------------------------


def _exposed(body: Iterable[ast.stmt]) -> Names:
    """Names that statements, one after the other, may read before they have bound them themselves."""
    exposed, settled = set(), set()
    for node in body:
        exposed |= _reads(node) - settled
        settled |= _settled([node])
    return frozenset(exposed)


def _reads(node: ast.stmt) -> Names:
    """Names that one statement may read before it has bound them itself."""
    if isinstance(node, ast.For):
        return _read(node.iter) | _exposed([*node.body]) - _bound(node.target) | _exposed(node.orelse)
    if isinstance(node, ast.While | ast.If):
        return _read(node.test) | _exposed(node.body) | _exposed(node.orelse)
    if isinstance(node, ast.With):
        targets = frozenset().union(*(_bound(item.optional_vars) for item in node.items if item.optional_vars))
        return frozenset().union(*(_read(item.context_expr) for item in node.items)) | _exposed(node.body) - targets
    if isinstance(node, ast.Try):
        handlers = (_exposed(each.body) | _read(each.type) - {each.name} for each in node.handlers)
        bodies = (_exposed(body) for body in (node.body, node.orelse, node.finalbody))
        return frozenset().union(*handlers, *bodies)
    return _read(node)


def _settled(body: Iterable[ast.stmt]) -> Names:
    """Names that statements, one after the other, certainly bind."""
    settled = set()
    for node in body:
        if isinstance(node, ast.If):
            settled |= _settled(node.body) & _settled(node.orelse)
        elif isinstance(node, ast.With | ast.Try):
            settled |= _settled(node.body if isinstance(node, ast.With) else node.finalbody)
        elif isinstance(node, ast.Assign):
            settled |= frozenset().union(*map(_bound, node.targets))
        elif isinstance(node, ast.AnnAssign) and node.value:
            settled |= _bound(node.target)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            settled.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            settled |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
    return frozenset(settled)


def _bound(target: ast.expr) -> Names:
    """Names in the target of an assignment."""
    return frozenset(each.id for each in ast.walk(target) if isinstance(each, ast.Name) and _is_store(each))


def _is_store(node: ast.expr) -> bool:
    return isinstance(node.ctx, ast.Store | ast.Del)


def _read(node: ast.AST | None) -> Names:
    """Names of the notebook that some code reads, in functions and comprehensions inside it as well."""
    if node is None:
        return frozenset()
    return frozenset(_referenced(symtable.symtable(ast.unparse(node), "<cell>", "exec")))


def _referenced(table: symtable.SymbolTable, outer: bool = True) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (outer or symbol.is_global()):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _referenced(inner, outer=False)


def _changed(node: ast.stmt) -> Iterator[str]:
    """Names whose object a statement stores into, adds to, or calls a method of as a statement."""
    for each in ast.walk(node):
        target = None
        if isinstance(each, ast.Attribute | ast.Subscript) and _is_store(each):
            target = each
        elif isinstance(each, ast.AugAssign):
            target = each.target
        elif isinstance(each, ast.Expr) and isinstance(each.value, ast.Call):
            target = each.value.func if isinstance(each.value.func, ast.Attribute) else None
        while isinstance(target, ast.Attribute | ast.Subscript | ast.Call):
            target = target.func if isinstance(target, ast.Call) else target.value
        if isinstance(target, ast.Name):
            yield target.id


def _modules(node: ast.stmt) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Import):
            yield from (alias.name for alias in each.names)
        elif isinstance(each, ast.ImportFrom):
            yield from (f"{each.module}.{alias.name}" for alias in each.names)
