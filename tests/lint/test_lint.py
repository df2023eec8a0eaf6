# SPDX-License-Identifier: Apache-2.0
"""The checks find what they look for: each is given a tree with one fault, and must name file and line."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

RUN = pathlib.Path(__file__).with_name("run")
HEAD = "/* SPDX-License-Identifier: Apache-2.0 */\n/* A file. */\n"

FAULTS = {
    "rooms": ("seed/x.c", HEAD + '#include "engine/network.h"\n', "seed/x.c:3: room 'seed/' may not include"),
    "banned": ("base/x.c", HEAD + "int f(const char *s) { return atoi(s); }\n", "base/x.c:3: atoi() hides errors"),
    "header": ("base/x.c", "int x;\n", "base/x.c:1: no line 'SPDX"),
    "size": ("base/x.c", HEAD + "\n" * 700, "base/x.c: 702 lines"),
    "format": ("base/x.c", HEAD + "int   x ;\n", "base/x.c:3:4: error"),
    "shell": ("x", "#!/bin/bash\nrm $1\n", "x:2:4: note: Double quote"),
    "words": ("docs/x.md", "see /ro" + "ot/.bashrc\n", "docs/x.md:1: belongs to one machine"),
}
CLEAN = {
    "banned": HEAD + "/* atoi() is banned */\nint f(void);\n",
    "rooms": HEAD + '#include "base/x.h"\n#include "trainctl/status.h"\n',
}


def lint(check, name, text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        result = subprocess.run([sys.executable, RUN, check], capture_output=True, text=True,
                                env={**os.environ, "TRAINCTL_LINT_ROOT": folder, "GIT_CEILING_DIRECTORIES": folder})
        return result.returncode, result.stdout, result.stderr


class Checks(unittest.TestCase):
    def test_every_check_finds_its_fault(self):
        for check, (name, text, expected) in FAULTS.items():
            with self.subTest(check):
                code, out, err = lint(check, name, text)
                if "not installed" in err:
                    self.skipTest(err.strip())
                self.assertEqual(code, 1, out)
                self.assertIn(expected, out)

    def test_what_is_right_passes(self):
        for check, text in CLEAN.items():
            with self.subTest(check):
                code, out, _ = lint(check, "seed/x.c", text)
                self.assertEqual(code, 0, out)


if __name__ == "__main__":
    unittest.main()
