"""Make TensorRT-LLM's table of flags and keys again from a checkout of its repository, and say what has changed.

    git clone --depth 1 https://github.com/NVIDIA/TensorRT-LLM CHECKOUT
    python tests/engines/trtllm_reference.py CHECKOUT           # exit status 1 if something has changed
    python tests/engines/trtllm_reference.py CHECKOUT --keep    # and writes it into the library

Two of its files are read: the flags that its own tests compare the command with, and the schema of the YAML that its
own tests generate again. From them the table takes names, types, defaults and states, no text. Since when something
exists cannot be read there: what is new is dated between the version that the table had and the checkout's.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import yaml

from enginelab.trtllm_reference import TABLE

FLAGS = "tests/unittest/api_stability/references/trtllm_serve_cli.yaml"
SCHEMA = "tensorrt_llm/schemas/trtllm-serve-config.schema.json"
# The preferred spelling, where it is not the option's own name: pull requests 9104 and 12105.
PREFERRED = {"extra_llm_api_options": "--config", "revision": "--hf_revision"}
BOUNDS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
KINDS = {"integer": "int", "number": "float", "boolean": "bool", "string": "str"}


def flags(checkout: Path) -> dict[str, dict]:
    """Option -> spellings (preferred first), type, default, status."""
    options = yaml.safe_load((checkout / FLAGS).read_text(encoding="utf-8"))["commands"]["serve"]["options"]
    table = {}
    for key, facts in sorted(options.items()):
        preferred = PREFERRED.get(key, f"--{key}")
        names = sorted(facts["flags"], key=lambda name: (name != preferred, name))
        choices = re.findall(r"'([^']+)'", facts["type"]) if facts["type"].startswith("Choice") else []
        kind = "=" + "|".join(choices) if choices else {"Path": "str"}.get(facts["type"], facts["type"])
        kind = "switch" if facts["is_flag"] else f"[{kind}]" if facts["multiple"] else kind
        table[key] = {"names": names, "type": kind, "default": facts["default"], "status": facts["status"]}
    return table


def keys(checkout: Path) -> tuple[str, dict[str, dict[str, str]]]:
    """The version that the schema is of, and its sections: key -> type and status."""
    schema = json.loads((checkout / SCHEMA).read_text(encoding="utf-8"))
    sections = {"": section(schema, schema["$defs"])}
    for name, definition in schema["$defs"].items():
        if "properties" in definition:
            sections[name] = section(definition, schema["$defs"])
    for found in inline(schema):
        sections[found["title"]] = section(found, schema["$defs"])
    version = re.search(r"TensorRT-LLM (\S+)", schema["title"])[1]
    return version, dict(sorted(sections.items()))


def inline(node: object) -> Iterator[dict]:
    """The sections that stand where they are used: titled mappings among the alternatives of a key."""
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        if isinstance(node, list) and isinstance(inner, dict) and {"properties", "title"} <= inner.keys():
            yield inner
        yield from inline(inner)


def section(definition: dict, definitions: dict) -> dict[str, str]:
    """Key -> "type" or "type / status" of one mapping of the schema."""
    table = {}
    for key, facts in sorted(definition["properties"].items()):
        status = facts.get("status") or next((s["status"] for s in facts.get("anyOf", ()) if "status" in s), "")
        status = "deprecated" if facts.get("deprecated") else status
        kinds = [kind for kind in kinds_of(facts, definitions) if kind != "null"]
        null = "?" * (kinds != kinds_of(facts, definitions))
        written = " or ".join(dict.fromkeys(kinds)) + null if kinds else "none"
        table[key] = written + (f" / {status}" if status else "")
    return table


def kinds_of(facts: dict, definitions: dict) -> list[str]:
    """The types that a schema allows, as the table writes them."""
    if "discriminator" in facts:
        mapping = facts["discriminator"]["mapping"]
        choices = "|".join(f"{value}={reference.rpartition('/')[2]}" for value, reference in sorted(mapping.items()))
        return [f"@{facts['discriminator']['propertyName']}:{choices}"]
    if "anyOf" in facts:
        found = [kind for each in facts["anyOf"] for kind in kinds_of(each, definitions)]
        told_apart = [kind for kind in found if kind in ("@DecodeCudaGraphConfig", "@EncodeCudaGraphConfig")]
        if len(told_apart) == 2:
            choices = "decode=DecodeCudaGraphConfig|encode=EncodeCudaGraphConfig"
            return [f"@mode:{choices}", *(kind for kind in found if kind not in told_apart)]
        return found
    if "$ref" in facts:
        name = facts["$ref"].rpartition("/")[2]
        return [f"@{name}"] if "properties" in definitions[name] else kinds_of(definitions[name], definitions)
    if "not" in facts:
        return ["null"]
    if "const" in facts:
        return [f"={facts['const']}"]
    if "enum" in facts and facts.get("type") == "string":
        return ["=" + "|".join(facts["enum"])]
    if "properties" in facts:
        return [f"@{facts['title']}"]
    if isinstance(facts.get("type"), list):
        return [kind for each in facts["type"] for kind in kinds_of({"type": each}, definitions)]
    if facts.get("type") == "array":
        inner = kinds_of(facts["items"], definitions) if "items" in facts else ["any"]
        return [f"[{' or '.join(inner)}]"]
    if facts.get("type") == "object":
        return ["map"]
    if "type" not in facts:
        return ["any"]
    if facts["type"] == "null":
        return ["null"]
    bounds = "".join(f"{sign}{facts[name]:g}" for name, sign in BOUNDS.items() if name in facts)
    return [KINDS[facts["type"]] + ("" if facts["type"] == "string" else bounds)]


def merged(old: dict, options: dict, version: str, sections: dict, commit: str) -> dict:
    """The table `old`, brought to what a checkout says; what is new there is dated between the two versions."""
    before = next(source["version"] for source in old["sources"] if source["what"] == "keys")
    between = "" if version == before else f"{before}..{version}"
    known = {name: since for facts in old["flags"].values() for name, since in facts["names"].items()}
    new_flags = {
        key: facts | {"names": {name: known.get(name, between) for name in facts["names"]}}
        for key, facts in options.items()
    }
    since = {key: old["keys_since"].get(key, "" if key in old["keys"][""] else between) for key in sections[""]}
    gone = {key for key in old["keys"][""] if key not in sections[""]}
    sources = [
        source | ({"version": version, "commit": commit} if source["what"] in ("flags", "keys") else {})
        for source in old["sources"]
    ]
    return old | {
        "sources": sources,
        "flags": new_flags,
        "keys_since": {key: value for key, value in since.items() if value},
        "gone_keys": sorted({*old["gone_keys"], *gone}),
        "keys": sections,
    }


def changes(old: dict, new: dict) -> list[str]:
    """What has come, gone or changed, a line each."""
    lines = []
    pairs = [("flag", flat(old["flags"]), flat(new["flags"]))]
    names = {**old["keys"], **new["keys"]}
    pairs += [(f"key of {name or 'the file'}", old["keys"].get(name, {}), new["keys"].get(name, {})) for name in names]
    for what, was, now in pairs:
        lines += [f"{what} {name}: gone (was {was[name]})" for name in was if name not in now]
        lines += [f"{what} {name}: new, {now[name]}" for name in now if name not in was]
        lines += [f"{what} {name}: {was[name]} -> {now[name]}" for name in was if was[name] != now.get(name, was[name])]
    return lines


def flat(options: dict) -> dict[str, str]:
    return {
        name: f"{facts['type']}, default {json.dumps(facts['default'])}, {facts['status']}"
        for facts in options.values()
        for name in facts["names"]
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the table with a checkout of TensorRT-LLM.")
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--keep", action="store_true", help="write the table into the library")
    given = parser.parse_args()
    for file in (FLAGS, SCHEMA):
        if not (given.checkout / file).is_file():
            sys.exit(f"The checkout has no {file}: it must be of TensorRT-LLM 1.4.0rc0 or newer.")
    head = subprocess.run(["git", "-C", given.checkout, "rev-parse", "HEAD"], capture_output=True, text=True)
    old = json.loads(TABLE.read_text(encoding="utf-8"))
    version, sections = keys(given.checkout)
    new = merged(old, flags(given.checkout), version, sections, head.stdout.strip() or "unknown")
    found = changes(old, new)
    print("\n".join(found) or "nothing has changed")
    if given.keep:
        new["read"] = date.today().isoformat()
        TABLE.write_text(json.dumps(new, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
