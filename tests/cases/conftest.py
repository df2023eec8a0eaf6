# SPDX-License-Identifier: Apache-2.0
"""Published faults as small programs of our own: each shows itself without the envelope, and with it is prevented or named.

A test is named after its case in the list of public reports (`test_a2_...`); faults that were planted on purpose have no
number. `lab` is a folder of its own with the program under test and what it needs.
"""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

BUILD = pathlib.Path(os.environ["TRAINCTL_BUILD"])
SOURCE = pathlib.Path(os.environ["TRAINCTL_SOURCE"])
PYTHON = os.environ.get("TRAINCTL_TEST_PYTHON", sys.executable)

# The rest of whoever runs the tests must not reach a case: the envelope refuses some of it.
PASSED = ("PATH", "HOME", "TMPDIR", "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")


def has(module):
    """Whether the Python under test has a module."""
    if PYTHON == sys.executable:
        return importlib.util.find_spec(module) is not None
    return subprocess.run([PYTHON, "-c", "import " + module], capture_output=True, check=False).returncode == 0


needs_numpy = pytest.mark.skipif(not has("numpy"), reason="NumPy is not installed")
needs_torch = pytest.mark.skipif(not has("torch"), reason="PyTorch is not installed")


class Run:
    """What `trainctl run --json` said, and the manifest."""

    def __init__(self, said):
        self.said = said
        self.path = pathlib.Path(said["path"])
        self.id, self.state, self.result = said["id"], said["state"], said["result_digest"]

    @property
    def manifest(self):
        return json.loads((self.path / "manifest.json").read_text())

    @property
    def log(self):
        return (self.path / "log.txt").read_text()

    def out(self, name):
        return (self.path / "out" / name).read_text()

    def uncontrolled(self, what):
        """The reasons given for `what`."""
        return [item["why"] for item in self.manifest.get("uncontrolled", []) if item["what"] == what]


class Lab:
    def __init__(self, folder):
        self.folder = folder
        self.env = {k: v for k, v in os.environ.items() if k in PASSED}
        folder.mkdir(exist_ok=True)
        beside = folder.parent  # what is in the folder is recorded as code
        self.plain_out = beside / "plain-out"
        self.env.update(TRAINCTL_STORE=str(beside / "store"), XDG_CACHE_HOME=str(beside / "cache"))

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def compile(self, name, text, *flags):
        """A C (or, for *.cc, C++) program or, with -shared, library."""
        source = self.write(name, text)
        target = source.with_suffix(".so" if "-shared" in flags else "")
        compiler = "c++" if source.suffix == ".cc" else "cc"
        subprocess.run([compiler, "-O1", "-fPIC", str(source), "-o", str(target), *flags], check=True)
        return target

    def spec(self, command, **more):
        """Writes exp.yaml: a spec that runs `command`. YAML reads JSON, so the members of `more` may be anything."""
        spec = {"name": "case", "seed": 1029, "run": command, **more}
        self.write("exp.yaml", json.dumps(spec, indent=1))

    def plain(self, command, expect=0, env=None):
        """The command alone, in an output folder of its own: standard output."""
        self.plain_out.mkdir(exist_ok=True)
        done = subprocess.run(["sh", "-c", command], cwd=self.folder, capture_output=True, text=True, check=False,
                              env={**self.env, "TRAINCTL_OUT": str(self.plain_out), **(env or {})})
        assert done.returncode == expect, done.stderr + done.stdout
        return done.stdout

    def trainctl(self, *words, expect=0, env=None):
        done = subprocess.run([BUILD / "bin/trainctl", *map(str, words)], cwd=self.folder, capture_output=True, text=True,
                              check=False, env={**self.env, **(env or {})})
        assert done.returncode == expect, done.stderr + done.stdout
        self.stderr = done.stderr
        return done.stdout

    def run(self, *words, expect=0, env=None):
        return Run(json.loads(self.trainctl("run", "exp.yaml", "--json", *words, expect=expect, env=env)))

    def verify(self, run="last", *words, expect=0, env=None):
        return json.loads(self.trainctl("verify", run, "--json", *words, expect=expect, env=env))


@pytest.fixture
def lab(tmp_path):
    return Lab(tmp_path / "lab")


@pytest.fixture
def python():
    """The Python under test, for commands."""
    return PYTHON
