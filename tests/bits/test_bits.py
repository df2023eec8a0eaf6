# SPDX-License-Identifier: Apache-2.0
"""bench/bits finds what it looks for: it is given programs that differ, and must say where."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BITS = pathlib.Path(__file__).resolve().parents[2] / "bench/bits"
PROGRAM = """#!/bin/sh
if [ "$1" = simd ]; then
    printf 'avx2\\nportable\\n'
    exit
fi
echo "net step 1 loss 00aa"
{fault}
echo "net step 2 loss 00cc"
"""


def bits(fault, *options, form="--own", path=None):
    """Exit code, standard output and standard error with a program whose second line is made by `fault`."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "bench/bench_bits")
        program.parent.mkdir()
        program.write_text(PROGRAM.format(fault=fault), encoding="ascii")
        program.chmod(0o755)
        environment = {**os.environ, "PATH": path} if path else None
        result = subprocess.run([sys.executable, BITS, folder, form, *options], capture_output=True, text=True,
                                env=environment)
        return result.returncode, result.stdout, result.stderr


class Findings(unittest.TestCase):
    def test_a_number_of_threads_that_shows_is_named_with_step_and_tensor(self):
        code, out, _ = bits('[ "$1" = 3 ] && echo "net step 1 gradient/conv0.weight 00bc" || '
                            'echo "net step 1 gradient/conv0.weight 00bb"')
        self.assertEqual(code, 1)
        self.assertIn("avx2 threads 3 workers 4 prefetch 1 cache 0\n", out)
        self.assertIn("first in net step 1 gradient/conv0.weight: 00bc, not 00bb\n", out)
        self.assertIn("6 runs, 2 distinct digests; ", out)

    def test_a_kernel_that_shows_is_named(self):
        code, out, _ = bits('echo "net step 1 output $TRAINCTL_SIMD"')
        self.assertEqual(code, 1)
        self.assertIn("portable threads 8 workers 2", out)
        self.assertIn("first in net step 1 output: portable, not avx2\n", out)

    def test_a_line_too_few_is_a_difference(self):
        code, out, _ = bits('[ "$2" = 4 ] && exit || true')
        self.assertEqual(code, 1)
        self.assertIn("6 runs, 2 distinct digests; ", out)

    def test_one_digest_that_is_not_the_one_written_down_is_an_error(self):
        code, out, _ = bits("true")
        self.assertEqual(code, 1)
        self.assertIn("the digest written down is ", out)
        self.assertIn("6 runs, 1 distinct digest; ", out)

    def test_a_program_that_fails_ends_it_with_its_words(self):
        code, _, err = bits('echo "bench_bits: no pool" >&2; exit 3')
        self.assertEqual(code, 1)
        self.assertIn("exit 3\nnet step 1 loss 00aa\nbench_bits: no pool", err)

    def test_a_missing_compiler_is_named_and_with_require_an_error(self):
        for options in ((), ("--require",)):
            _, out, err = bits("true", *options, form="--short", path="/nowhere")
            self.assertIn("(left out: gcc -O2 aarch64: no qemu-aarch64)\n", out)
            self.assertEqual("nothing may be left out" in err, options == ("--require",))

    def test_json_is_one_row(self):
        code, out, _ = bits("true", "--json")
        row = json.loads(out)
        self.assertEqual((code, row["case"], row["ours"], row["runs"], row["expected"]), (1, "bits", 1, 6, False))


if __name__ == "__main__":
    unittest.main()
