#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""aarch64.py BUILD [--all] [--require]: unit tests of what computes, cross-compiled and run under qemu.

Those that know by themselves which bits must come out: golden digests, known answers, references. Of the engine's tests
those that take seconds; with --all the others too. Exit code 77 without compiler or qemu, with --require 1.
"""
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys

BITS = str(pathlib.Path(__file__).resolve().parents[2] / "bench/bits")
QUICK = ("engine_golden", "engine_tree", "seed_philox", "seed_draw")
SLOW = ("base_fmath", "seed_permutation", "engine_gemm", "engine_loader", "engine_math", "engine_network_bits",
        "engine_network_gradients")


def load(path):
    """A Python file without an ending, as a module."""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("bits", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bits", loader))
    loader.exec_module(module)
    return module


def main():
    bits = load(BITS)
    build = bits.Build("gcc", "-O2", "aarch64")
    missing = bits.tool_missing(build)
    if missing:
        print(f"left out: no {missing}")
        return 1 if "--require" in sys.argv else 77
    failed = 0
    for test in QUICK + (SLOW if "--all" in sys.argv else ()):
        try:
            command = bits.make(build, pathlib.Path(sys.argv[1]).resolve(), f"bin/unit_{test}")
        except bits.Failure as failure:
            print(failure)
            return 1
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(f"{test}: {'fails' if done.returncode else 'passes'}", flush=True)
        if done.returncode:
            print(done.stdout[-2000:] + done.stderr[-2000:])
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
