# SPDX-License-Identifier: Apache-2.0
"""The kernel's entropy is counted, and answered from a stream only where that is asked for."""
import pytest

SEEDED = "entropy=seeded"
WAYS = {"getrandom": "getrandom", "getentropy": "getentropy", "urandom": "urandom", "random": "random",
        "stdio": "urandom"}


@pytest.mark.parametrize("how", WAYS)
def test_it_is_counted_and_left_alone(run, how):
    first = run("entropy", how)
    assert run.counts() == {WAYS[how]: 1}
    assert run("entropy", how) != first


@pytest.mark.parametrize("how", WAYS)
def test_seeded_it_repeats(run, how):
    first = run("entropy", how, knobs=SEEDED)
    assert run.counts() == {WAYS[how]: 1}
    assert run("entropy", how, knobs=SEEDED) == first
    assert run("entropy", how, knobs=SEEDED, seed="8") != first


def test_seeded_the_device_never_ends_for_read(run):
    first = run("entropy", "urandom", "3000000", knobs=SEEDED)
    assert first.startswith("3000000 ") and first.endswith("mixed\n")
    assert run("entropy", "urandom", "3000000", knobs=SEEDED) == first


def test_seeded_a_redirected_device_never_ends_either(run):
    command = "for i in 1 2; do head -c 700000 </dev/urandom | cksum; done"
    first = run("/bin/sh", "-c", command, knobs=SEEDED)
    one, two = first.splitlines()
    assert one != two and one.endswith(" 700000") and two.endswith(" 700000")
    assert run("/bin/sh", "-c", command, knobs=SEEDED) == first


def test_seeded_parent_and_children_draw_different_numbers_and_the_same_in_each_run(run):
    first = run("entropy", "forks", knobs=SEEDED)
    assert len(set(first.split())) == 3
    assert run("entropy", "forks", knobs=SEEDED) == first


def test_seeded_python_repeats(run):
    script = "import os, random, secrets, uuid; print(os.urandom(8), random.random(), secrets.token_hex(4), uuid.uuid4())"
    first = run("/usr/bin/python3", "-c", script, knobs=SEEDED)
    assert run("/usr/bin/python3", "-c", script, knobs=SEEDED) == first


def test_without_a_seed_entropy_is_the_kernels(run):
    assert run("entropy", "getrandom", knobs=SEEDED, seed="") != run("entropy", "getrandom", knobs=SEEDED, seed="")
