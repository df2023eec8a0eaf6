#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one case of tests/cli/cases: commands in an empty folder, and what they must print.

A case is a text file. Its first lines say what it shows; then come sections:

    [copy NAME AS]   a file of tests/cli/common, under another name
    [file NAME]      a file with the lines that follow
    [needs WHAT]     'root' or 'native': without it the case is skipped
    [step]           a command and its expectations, one per line:
        $ COMMAND        for sh; further '$' lines continue it; exit code 77 skips the case
        exit: N          default 0
        out: TEXT        standard output contains this, behind what the line before matched
        err: TEXT        the same for standard error
        out~ REGEX       a regular expression instead, searched anywhere
        err~ REGEX
        out!: TEXT       must not contain
        err!: TEXT
        json: PATH = V   a member of the one JSON object on standard output: a.b[0] = "text"
        errors: N        the number of lines with 'error:' on standard error

The commands see an environment of their own: HOME, the run store and the cache lie in the folder, PATH begins with
the built program and tests/cli/tools.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
TIMEOUT = 90


class Failure(Exception):
    pass


def parse(path):
    """The sections of a case: [(head, [line, ...]), ...]."""
    sections = []
    with open(path, encoding="utf-8") as f:
        for line in f.read().splitlines():
            head = re.fullmatch(r"\[(copy|file|needs|step)( .*)?\]", line)
            if head:
                sections.append(((head.group(1), (head.group(2) or "").split()), []))
            elif sections:
                sections[-1][1].append(line)
    return sections


def dig(value, path):
    for part in re.findall(r"[^.\[\]]+", path):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


class Text:
    """An output whose expectations are matched in order."""

    def __init__(self, name, text):
        self.name, self.text, self.at = name, text, 0

    def check(self, kind, wanted):
        if kind == ":":
            found = self.text.find(wanted, self.at)
            if found < 0:
                where = " behind what matched before" if self.at else ""
                raise Failure(f"{self.name} does not contain{where}: {wanted!r}")
            self.at = found + len(wanted)
        elif kind == "~" and not re.search(wanted, self.text, re.M):
            raise Failure(f"{self.name} does not match: {wanted}")
        elif kind == "!:" and wanted in self.text:
            raise Failure(f"{self.name} must not contain: {wanted!r}")


def check_step(lines, done):
    texts = {"out": Text("standard output", done.stdout), "err": Text("standard error", done.stderr)}
    wanted_exit = 0
    for line in lines:
        if not line.strip() or line.startswith(("$", "#")):
            continue
        if line.startswith("exit: "):
            wanted_exit = int(line[6:])
        elif line.startswith("errors: "):
            n = sum("error:" in text for text in done.stderr.splitlines())
            if n != int(line[8:]):
                raise Failure(f"{n} errors, not {line[8:]}")
        elif line.startswith("json: "):
            path, value = line[6:].split(" = ", 1)
            found = dig(json.loads(done.stdout), path)
            if found != json.loads(value):
                raise Failure(f"{path} is {json.dumps(found)}, not {value}")
        else:
            match = re.fullmatch(r"(out|err)(!:|:|~) ?(.*)", line)
            if not match:
                raise Failure(f"the case has a line that means nothing: {line}")
            texts[match.group(1)].check(match.group(2), match.group(3))
    if done.returncode != wanted_exit:
        raise Failure(f"exit code {done.returncode}, not {wanted_exit}")


def environment(folder, build):
    env = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
    env.update(PATH=f"{build}/bin:{HERE}/tools:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", HOME=folder,
               XDG_CACHE_HOME=f"{folder}/.cache", TRAINCTL_STORE=f"{folder}/store", LC_ALL="C.UTF-8",
               TRAINCTL_BUILD=build, TRAINCTL_SOURCE=os.path.dirname(os.path.dirname(HERE)), TMPDIR=folder)
    return env


def lacks(what, build):
    if what == "root":
        return os.geteuid() != 0
    if what == "native":
        return not os.path.exists(f"{build}/lib/trainctl/plugins/native.so")
    raise Failure(f"[needs {what}] means nothing")


def run_case(path, folder, build):
    for (kind, words), lines in parse(path):
        if kind == "copy":
            shutil.copy(f"{HERE}/common/{words[0]}", os.path.join(folder, words[1]))
        elif kind == "file":
            name = os.path.join(folder, words[0])
            os.makedirs(os.path.dirname(name), exist_ok=True)
            with open(name, "w", encoding="utf-8") as f:
                f.write("\n".join(lines).rstrip("\n") + "\n")
        elif kind == "needs":
            if any(lacks(what, build) for what in words):
                print(f"skipped: it needs {' '.join(words)}")
                return SKIPPED
        else:
            command = "\n".join(line[2:] for line in lines if line.startswith("$"))
            done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment(folder, build), text=True,
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False,
                                  errors="backslashreplace")
            if done.returncode == SKIPPED:
                print(f"skipped: {done.stderr}")
                return SKIPPED
            try:
                check_step(lines, done)
            except (Failure, KeyError, IndexError, ValueError) as e:
                print(f"{path}: {e!r}\n$ {command}\nexit code {done.returncode}\n--- standard output\n{done.stdout}"
                      f"--- standard error\n{done.stderr}")
                return 1
    return 0


def main():
    build = os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else os.environ["TRAINCTL_BUILD"])
    with tempfile.TemporaryDirectory(prefix="trainctl-cli-") as folder:
        code = run_case(os.path.abspath(sys.argv[1]), os.path.realpath(folder), build)
        subprocess.run(["chmod", "-R", "u+w", folder], check=False)
    return code


if __name__ == "__main__":
    sys.exit(main())
