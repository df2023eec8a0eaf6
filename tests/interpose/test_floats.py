# SPDX-License-Identifier: Apache-2.0
"""The floating-point environment is kept across dlopen, and who changed it is named."""
import pytest
from conftest import PROGRAMS

FAST, ROUNDS, PLAIN = (PROGRAMS / f"lib/lib{name}.so" for name in ("fast", "rounds", "plain"))
GOOD, BAD = "denormals nearest", "flushed nearest"


def test_a_library_with_a_fast_constructor_changes_all_later_arithmetic(run):
    out = run("floats", PLAIN, FAST, preload=None).splitlines()
    assert out == [GOOD, GOOD, BAD, BAD + " in a thread"]


def test_it_is_prevented_and_named(run):
    out = run("floats", PLAIN, FAST, PLAIN).splitlines()
    assert out == [GOOD] * 4 + [GOOD + " in a thread"]
    event, = run.events("fp-environment")
    assert event["subject"] == str(FAST) and event["detail"].startswith("FTZ DAZ changed")


def test_with_the_knob_off_it_is_as_it_was(run):
    assert run("floats", FAST, knobs="denormals=off").splitlines() == [GOOD, BAD, BAD + " in a thread"]
    assert run.events("fp-environment") == []


def test_another_rounding_mode_is_put_back_as_well(run):
    out = run("floats", ROUNDS).splitlines()
    assert out == [GOOD, GOOD, GOOD + " in a thread"]
    event, = run.events("fp-environment")
    assert event["subject"] == str(ROUNDS) and event["detail"].startswith("rounding")


def test_a_library_that_is_there_from_the_start_is_put_right_before_main(run):
    assert run("floats", preload=str(FAST)).splitlines()[0] == BAD
    from conftest import LIBRARY
    assert run("floats", preload=f"{LIBRARY}:{FAST}").splitlines()[0] == GOOD
    assert [event["subject"] for event in run.events("fp-environment")] == [str(FAST)]


@pytest.mark.parametrize("kind", ["runpath", "rpath"])
def test_a_library_still_finds_others_through_its_own_path(run, kind):
    library = PROGRAMS / f"libby_{kind}.so"
    plain = run("loads", library, preload=None)
    assert plain.splitlines() == ["42", "closed", "missing", "said so"]
    assert run("loads", library) == plain


def test_what_was_closed_again_is_in_the_list(run):
    run("loads", PROGRAMS / "libby_runpath.so")
    assert {str(PROGRAMS / "libby_runpath.so"), str(PLAIN)} <= {item[0] for item in run.objects()}
