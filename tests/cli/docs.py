#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the documents that follow from the option tables: docs.py BUILD SOURCE [--update].

Without --update it only compares: the parts of docs/cli.md and share/man/trainctl.1 that are made from the tables,
docs/plugins-reference.md, docs/determinism.md, share/schema/manifest-1.json, and that completion offers every option.
"""
import json
import pathlib
import re
import subprocess
import sys

BUILD, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
PROGRAM = BUILD / "bin" / "trainctl"
UPDATE = "--update" in sys.argv[3:]
HELP = {"name": "--help", "value": None, "doc": "this text", "repeated": False, "letter": "-h"}


def trainctl(*args):
    return subprocess.run([PROGRAM, *args], check=True, capture_output=True, text=True).stdout


def options(command):
    return command["options"] + [HELP]


def markdown(commands):
    for c in commands:
        yield f"\n## {c['name']}\n\n{c['summary']}.\n"
        yield "\n" + "".join(f"    trainctl {c['name']} {line}".rstrip() + "\n" for line in c["usage"])
        if c["details"]:
            yield "\n" + " ".join(c["details"].split()) + "\n"
        yield "\n| option | |\n|---|---|\n"
        for o in options(c):
            name = (f"{o['letter']}, " if o["letter"] else "") + o["name"] + (f" {o['value']}" if o["value"] else "")
            name = name.replace("|", "\\|")
            doc = o["doc"] + (" (may be repeated)" if o["repeated"] else "")
            yield f"| `{name}` | {doc} |\n"
        if c["examples"]:
            yield "\nExamples:\n\n" + "".join(f"    {e.strip()}\n" for e in c["examples"].strip("\n").splitlines())


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def man(commands):
    for c in commands:
        yield f".SS {c['name']}\n"
        for i, line in enumerate(c["usage"]):
            yield (".br\n" if i else "") + f".B trainctl {c['name']}\n" + (roff(line) + "\n" if line else "")
        yield f".PP\n{roff(c['summary'])}.\n"
        if c["details"]:
            yield f".PP\n{roff(' '.join(c['details'].split()))}\n"
        for o in options(c):
            head = (f"{o['letter']}, " if o["letter"] else "") + o["name"]
            yield f".TP\n.B {roff(head)}" + (f" \\fI{roff(o['value'])}\\fR" if o["value"] else "") + "\n"
            yield roff(o["doc"]) + (" (may be repeated)" if o["repeated"] else "") + "\n"
        if c["examples"]:
            examples = "\n".join(e.strip() for e in c["examples"].strip("\n").splitlines())
            yield f".PP\nExamples:\n.PP\n.nf\n.RS\n{roff(examples)}\n.RE\n.fi\n"


def option_rows(options):
    if not options:
        return "\nNo options.\n"
    rows = "\n| option | type | range | default | |\n|---|---|---|---|---|\n"
    for o in options:
        default = f"`{o['default']}`" if o["default"] is not None else "required" if o["required"] else "–"
        doc = o["doc"] + (f", in {o['unit']}" if o["unit"] else "")
        doc += "" if o["changes_results"] else " (never changes a result)"
        kind = o["type"] + (", a list" if o["repeated"] else "")
        rows += f"| `{o['name']}` | {kind} | {(o['range'] or '').replace('|', ' · ')} | {default} | {doc} |\n"
    return rows


def reference():
    """Every plugin of the tree, from its own tables."""
    yield ("# Plugins of the tree\n\nMade from the plugins' own tables by `tests/cli/docs.py`; `trainctl plugins NAME` prints "
           "the same for any plugin.\n")
    names = sorted(path.stem for path in (BUILD / "lib/trainctl/plugins").glob("*.so"))
    for p in (json.loads(trainctl("plugins", name, "--json")) for name in names):
        effect = "may be added or left out without changing a bit" if p["bits"] == "same" else "part of the recipe"
        yield f"\n## {p['name']}\n\n{p['summary'][:1].upper() + p['summary'][1:]}. Provides "
        yield ", ".join(f"`{e}`" for e in p["provides"]) + f"; {effect}.\n"
        yield option_rows(p["options"])
        for op in p["operators"]:
            yield f"\n### {op['name']}\n\n{op['doc'][:1].upper() + op['doc'][1:]}.\n" + option_rows(op["options"])


def between(text, begin, end, content):
    """`text` with what stands behind the line with `begin`, and before `end`, replaced."""
    start = text.index("\n", text.index(begin)) + 1
    stop = text.index(end, start) if end else len(text)
    return text[:start] + content + text[stop:]


def keep(name, content):
    path = SOURCE / name
    if path.exists() and path.read_text(encoding="utf-8") == content:
        return []
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        return []
    return [f"{name} is not what the tables say: tests/cli/docs.py BUILD SOURCE --update"]


def main():
    commands = sorted((c for c in json.loads(trainctl("help", "--json")) if c["rank"]), key=lambda c: c["rank"])
    wrong = []
    text = (SOURCE / "docs/cli.md").read_text(encoding="utf-8")
    wrong += keep("docs/cli.md", between(text, "<!-- From here on", None, "".join(markdown(commands))))
    text = (SOURCE / "share/man/trainctl.1").read_text(encoding="utf-8")
    wrong += keep("share/man/trainctl.1", between(text, '.\\" From here', ".SH EXIT STATUS", "".join(man(commands))))
    wrong += keep("docs/plugins-reference.md", "".join(reference()))
    text = (SOURCE / "docs/determinism.md").read_text(encoding="utf-8")
    wrong += keep("docs/determinism.md", between(text, "<!-- From here on", None, "\n" + trainctl("doctor", "--variables")))
    schema = json.dumps(json.loads(trainctl("show", "--schema")), indent=2, sort_keys=True) + "\n"
    wrong += keep("share/schema/manifest-1.json", schema)
    if trainctl("complete", "--", "").split() != sorted(c["name"] for c in commands):
        wrong.append("completion does not offer every command")
    for c in commands:
        offered = trainctl("complete", "--", c["name"], "--").split()
        if sorted(offered) != sorted(o["name"] for o in options(c)):
            wrong.append(f"completion of {c['name']} does not offer every option")
        shown = trainctl(c["name"], "--help")
        wrong += [f"{c['name']} --help does not show {o['name']}" for o in options(c) if o["name"] not in shown]
        if "Examples:" not in shown:
            wrong.append(f"{c['name']} --help has no example")
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
