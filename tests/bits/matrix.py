#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One recipe, many ways to compute it, one result digest.

Runs a spec again and again with other resources (threads, loader workers, prefetch depth, cache), other SIMD kernels
and, with --full, from builds of the whole tree by either compiler, and demands the same result digest each time; also
the one that is written down beside the spec. On a mismatch `trainctl diff` names the first step and field that differ.
bench/bits has many more builds, of what computes alone.

Only the standard library is used.
"""
import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

THREADS, WORKERS, PREFETCH, CACHE = (1, 2, 3, 5), (0, 1, 4), (0, 8), ("0 B", "256 MiB")
# Every value of every resource at least once; the full matrix has all their combinations.
SHORT = ((1, 0, 0, "0 B"), (2, 1, 8, "256 MiB"), (3, 4, 0, "256 MiB"), (5, 4, 8, "0 B"))
SIMD = ("portable", "avx2", "avx512", "neon")
# The whole tree once more: each compiler, the least and the most optimization, the oldest and the newest instructions.
BUILDS = (("gcc", "-O0", "x86-64-v3"), ("gcc", "-O3", "x86-64-v4"), ("clang", "-O0", "x86-64-v2"), ("clang", "-O3", "x86-64-v3"))
FLAGS = {
    "x86-64-v2": {"ssse3", "sse4_1", "sse4_2", "popcnt"},
    "x86-64-v3": {"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}


class Failure(Exception):
    """A run that could not be made; not a wrong digest."""


def run(trainctl, spec, folder, resources, simd=None):
    """Trains once in `folder` and returns what `run --json` says."""
    threads, workers, prefetch, cache = resources
    command = [str(trainctl), "run", "--json", "--quiet", "--no-vcs", str(spec)]
    for name, value in (("threads", threads), ("workers", workers), ("prefetch", prefetch), ("cache", cache)):
        command += ["--set", f"resources.{name}={value}"]
    environment = dict(os.environ)
    environment.pop("TRAINCTL_SIMD", None)
    environment["TRAINCTL_STORE"] = str(folder)
    if simd:
        environment["TRAINCTL_SIMD"] = simd
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{' '.join(command)}\nexit {done.returncode}\n{(done.stderr + done.stdout).strip()}")
    return json.loads(done.stdout)


def cpu_flags():
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return set()
    for line in text.splitlines():
        if line.startswith("flags"):
            return set(line.partition(":")[2].split())
    return set()


def build(source, folder, compiler, level, target):
    """Builds the program and its plugins once more; returns the program."""
    configure = ["cmake", "-S", str(source), "-B", str(folder), "-G", "Ninja", f"-DCMAKE_C_COMPILER={compiler}",
                 "-DCMAKE_BUILD_TYPE=None", f"-DCMAKE_C_FLAGS={level} -march={target}", "-DBUILD_TESTING=OFF",
                 "-DTRAINCTL_CUDA=OFF"]
    for command in (configure, ["ninja", "-C", str(folder), "--quiet"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return folder / "bin" / "trainctl"


class Matrix:
    def __init__(self, trainctl, spec, folder, expected):
        self.trainctl, self.spec, self.folder, self.expected = trainctl, spec, folder, expected
        self.runs, self.digests, self.first, self.bad = 0, {}, None, False

    def check(self, what, resources, trainctl=None, simd=None):
        result = run(trainctl or self.trainctl, self.spec, self.folder, resources, simd)
        digest = result["result_digest"]
        self.runs += 1
        self.digests.setdefault(digest, what)
        print(f"{digest[:23]}  {what}", flush=True)
        if self.first is None:
            self.first = result
            if self.expected is not None:
                for name in ("recipe_digest", "result_digest"):
                    if result[name] != self.expected[name]:
                        print(f"the {name} written down is {self.expected[name]}, this is {result[name]}")
                        self.bad = True
        elif digest != self.first["result_digest"]:
            self.bad = True
            self.explain(result)

    def explain(self, other):
        done = subprocess.run([str(self.trainctl), "diff", self.first["path"], other["path"]], cwd=self.folder,
                              capture_output=True, text=True, check=False)
        print(done.stdout + done.stderr, end="", flush=True)


def words(resources):
    return "threads {} workers {} prefetch {} cache {}".format(*resources)


def resource_cases(matrix, full):
    for resources in itertools.product(THREADS, WORKERS, PREFETCH, CACHE) if full else SHORT:
        matrix.check(words(resources), resources)


def simd_cases(matrix):
    """Kernels that this processor has; asking for another is an error that is not one of the matrix."""
    for simd in SIMD:
        try:
            matrix.check(f"TRAINCTL_SIMD={simd}", SHORT[1], simd=simd)
        except Failure as failure:
            if f"no SIMD variant '{simd}'" not in str(failure):
                raise
            print(f"(this machine has no {simd} kernels)")


def compiler_cases(matrix, source, scratch):
    flags = cpu_flags()
    for compiler, level, target in BUILDS:
        what = f"{compiler} {level} -march={target}"
        if shutil.which(compiler) is None or not FLAGS[target] <= flags:
            print(f"(not here: {what})")
            continue
        folder = scratch / "build"
        shutil.rmtree(folder, ignore_errors=True)
        matrix.check(what, SHORT[1], trainctl=build(source, folder, compiler, level, target))


def expectation(path, spec):
    if not path.exists():
        return None
    return json.loads(path.read_text(encoding="utf-8")).get(spec.name)


def main():
    source = Path(__file__).resolve().parents[2]
    example = source / "examples" / "fashion-mnist"
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", type=Path, default=source / "build", help="build folder with bin/trainctl")
    parser.add_argument("--spec", type=Path, default=example / "short.yaml")
    parser.add_argument("--expected", type=Path, default=example / "expected.json")
    parser.add_argument("--full", action="store_true", help="all combinations of resources, and other builds")
    parser.add_argument("--once", action="store_true", help="one run, against the digest that is written down")
    arguments = parser.parse_args()
    trainctl, spec = arguments.build.resolve() / "bin" / "trainctl", arguments.spec.resolve()
    with tempfile.TemporaryDirectory(prefix="trainctl-bits-") as scratch:
        folder = Path(scratch) / "runs"
        folder.mkdir()
        matrix = Matrix(trainctl, spec, folder, expectation(arguments.expected, spec))
        try:
            if arguments.once:
                matrix.check(words(SHORT[1]), SHORT[1])
            else:
                resource_cases(matrix, arguments.full)
                simd_cases(matrix)
            if arguments.full:
                compiler_cases(matrix, source, Path(scratch))
        except Failure as failure:
            print(failure)
            return 1
    print(f"{matrix.runs} runs, {len(matrix.digests)} distinct digest{'s' if len(matrix.digests) != 1 else ''}")
    return 1 if matrix.bad or len(matrix.digests) != 1 else 0


if __name__ == "__main__":
    sys.exit(main())
