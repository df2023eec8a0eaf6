# SPDX-License-Identifier: Apache-2.0
"""Seeds of libc's generators: the run's where nobody gave one or a clock did, the program's where it did."""
import shutil

import pytest

KEPT = "libc_seeds=off"
FUNCTIONS = ["srand", "srandom", "srand48", "seed48", "rand_r", "initstate"]
CLOCKS = ["time", "time-xor-pid", "time-times-pid", "pid", "micro", "nano", "entropy"]


def test_generators_that_nobody_seeds_start_from_the_runs_seed(run):
    first = run("seeds", "none", "-")
    assert run("seeds", "none", "-") == first
    assert run("seeds", "none", "-", seed="8") != first
    assert run("seeds", "none", "-", knobs=KEPT) == run("seeds", "none", "-", preload=None)


def test_without_a_seed_of_the_runs_nothing_is_seeded(run):
    assert run("seeds", "none", "-", seed="") == run("seeds", "none", "-", preload=None)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("seed", ["0", "1", "42", "1234", "20240101", "3735928559"])
def test_a_seed_that_is_a_constant_is_respected(run, function, seed):
    assert run("seeds", function, seed) == run("seeds", function, seed, preload=None)
    assert run.events("time-seeded") == []


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("how", CLOCKS)
def test_a_seed_from_a_clock_is_found_and_replaced(run, function, how):
    first = run("seeds", function, how)
    assert [event["subject"] for event in run.events("time-seeded")] == [function]
    assert run.counts()["time_seeds"] == 1
    assert run("seeds", function, how) == first
    assert run("seeds", function, how, seed="8") != first


def test_a_seed_from_a_clock_is_only_reported_with_the_knob_off(run):
    run("seeds", "srand", "time", knobs=KEPT)
    assert "left as it was" in run.events("time-seeded")[0]["detail"]


def test_the_children_of_a_run_do_not_share_a_replaced_seed(run):
    out = run("/bin/sh", "-c", "for i in 1 2 3; do \"$0\" srand time; done", shutil.which("seeds", path=None) or seeds())
    lines = out.splitlines()
    assert len(set(lines)) == 3
    assert run("/bin/sh", "-c", "for i in 1 2 3; do \"$0\" srand time; done", seeds()).splitlines() == lines


def seeds():
    from conftest import PROGRAMS
    return str(PROGRAMS / "seeds")


@pytest.fixture
def device(run, tmp_path):
    compiler = shutil.which("g++")
    if not compiler:
        pytest.skip("no C++ compiler")
    (tmp_path / "device.cc").write_text("""
        #include <iostream>
        #include <random>
        int main() { std::random_device d; std::cout << d() << ' ' << d() << '\\n'; }""")
    run(compiler, "-o", tmp_path / "device", tmp_path / "device.cc")
    return tmp_path / "device"


def test_random_device_draws_from_the_run(run, device):
    first = run(device)
    assert run.counts()["random_device"] == 2
    assert run(device) == first and len(set(first.split())) == 2
    assert run(device, seed="8") != first
    assert run(device, knobs=KEPT) != run(device, knobs=KEPT)


def test_a_generator_seeded_from_an_unseeded_random_device_is_found(run, tmp_path):
    compiler = shutil.which("g++")
    if not compiler:
        pytest.skip("no C++ compiler")
    (tmp_path / "mixed.cc").write_text("""
        #include <cstdlib>
        #include <random>
        int main() { std::random_device d; std::srand(d()); }""")
    run(compiler, "-o", tmp_path / "mixed", tmp_path / "mixed.cc")
    run(tmp_path / "mixed", knobs=KEPT)
    assert [event["subject"] for event in run.events("time-seeded")] == ["srand"]
