# SPDX-License-Identifier: Apache-2.0
"""Directories are listed by bytes, by whatever function, and everything else about them is as it was."""
import os
import shutil

import pytest

NAMES = [f"image-{n:05d}.png" for n in range(700)] + ["a", "B", "é", "zz", ".hidden", "image-", "x" * 255, "x" * 254]
ALL = sorted([os.fsencode(name) for name in NAMES] + [b".", b".."])
VISIBLE = [name for name in ALL if not name.startswith(b".")]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for name in sorted(NAMES, key=lambda name: hash((name, 3))):
        (folder / name).touch()
    return folder


def lines(text):
    return [os.fsencode(line) for line in text.splitlines()]


def test_the_kernel_itself_gives_another_order(run, folder):
    raw = lines(run("listing", "system-call", folder))
    assert sorted(raw) == ALL and raw != ALL


@pytest.mark.parametrize("how", ["readdir", "readdir_r", "fdopendir", "scandir", "scandirat"])
def test_a_listing_is_sorted(run, folder, how):
    assert lines(run("listing", how, folder)) == ALL
    assert run.counts()["directories"] == 1


def test_a_listing_is_the_kernels_with_the_knob_off(run, folder):
    raw = run("listing", "system-call", folder)
    assert run("listing", "readdir", folder, knobs="sort_directories=off") == raw
    assert run("listing", "scandir", folder, knobs="sort_directories=off") == raw


def test_scandir_keeps_the_callers_filter_and_order(run, folder):
    assert lines(run("listing", "scandir-reversed", folder)) == VISIBLE[::-1]


def test_glob_sorts_though_it_was_told_not_to(run, folder):
    assert lines(run("listing", "glob", folder)) == VISIBLE


def test_fts_sorts_what_it_finds_and_keeps_the_order_of_its_arguments(run, folder, tmp_path):
    other = tmp_path / "a-before-data"
    other.mkdir()
    out = lines(run("listing", "fts", folder, other))
    assert out[0] == os.fsencode(folder) and out[-1] == os.fsencode(other)
    assert out[1:-1] == [name for name in ALL if name not in (b".", b"..")]


def test_nftw_is_out_of_reach_and_says_so(run, folder):
    assert sorted(lines(run("listing", "nftw", folder))) == sorted([b"data", *(n for n in ALL if n not in (b".", b".."))])
    assert [event["subject"] for event in run.events("unsorted")] == ["nftw"]


def test_positions_offsets_inodes_and_types_are_right(run, folder):
    out = run("listing", "positions", folder).splitlines()
    assert out == ["same", "offset", ".", "1 new", str(len(ALL) + 1), "end 0"]


def test_threads_with_streams_of_their_own(run, folder):
    assert run("listing", "threads", folder).split() == [str(len(ALL))] * 8


def test_what_fails_fails_with_the_same_errno(run, folder):
    assert run("listing", "failures", folder) == run("listing", "failures", folder, preload=None)


@pytest.mark.parametrize("command", [["ls", "-U"], ["ls", "-f"], ["find"]])
def test_tools_see_the_order(run, folder, command):
    out = lines(run(*command, folder))
    names = [os.path.basename(line) for line in out if line != os.fsencode(folder)]
    assert names == [name for name in ALL if name in names] and len(names) >= len(VISIBLE)


def test_python_sees_the_order(run, folder):
    script = """if True:
        import os, sys, glob, pathlib
        a = os.listdir(sys.argv[1])
        with os.scandir(sys.argv[1]) as entries:
            b = [entry.name for entry in entries]
        fd = os.open(sys.argv[1], os.O_RDONLY)
        c, d = os.listdir(fd), os.listdir(fd)
        e = [path.name for path in pathlib.Path(sys.argv[1]).iterdir()]
        assert a == b == c == d == e == sorted(a, key=os.fsencode), "not sorted"
        print(len(a))"""
    assert run("/usr/bin/python3", "-c", script, folder) == f"{len(NAMES)}\n"


def test_cpp_filesystem_sees_the_order(run, folder, tmp_path):
    compiler = shutil.which("g++")
    if not compiler:
        pytest.skip("no C++ compiler")
    (tmp_path / "walk.cc").write_text("""
        #include <filesystem>
        #include <iostream>
        int main(int, char **argv) {
            for (auto &e : std::filesystem::recursive_directory_iterator(argv[1]))
                std::cout << e.path().filename().string() << '\\n';
        }""")
    run(compiler, "-std=c++17", "-o", tmp_path / "walk", tmp_path / "walk.cc")
    assert lines(run(tmp_path / "walk", folder)) == [name for name in ALL if name not in (b".", b"..")]


def test_a_folder_that_is_removed_while_it_is_listed(run, folder):
    run("/bin/rm", "-r", folder)
    assert not folder.exists()
