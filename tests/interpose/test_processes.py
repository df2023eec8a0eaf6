# SPDX-License-Identifier: Apache-2.0
"""Children, ends, and programs that the interposer cannot be in: nothing breaks, and what is missed is said."""
import os
import shutil
import subprocess

import pytest
from conftest import LIBRARY, PROGRAMS

CHILDREN = PROGRAMS / "children"


def ids(run, kind):
    return [line[kind] for line in run.lines if kind in line]


@pytest.mark.parametrize("how, status", [("exit", 0), ("_exit", 4), ("quick_exit", 6), ("signal", 9)])
def test_every_end_that_libc_sees_is_reported(run, how, status):
    run("children", how, expect=status)
    ends = [line for line in run.lines if "end" in line]
    assert len(ends) == 1 and ends[0]["program"] == str(CHILDREN)
    assert ends[0]["how"] == {"signal": "_exit"}.get(how, how)


def test_an_abort_is_a_beginning_without_an_end(run):
    run("children", "abort", expect=-6)
    assert len(ids(run, "begin")) == 1 and ids(run, "end") == []


@pytest.mark.parametrize("how", ["vfork", "fork", "spawn", "spawnp"])
def test_children_report_under_ids_of_their_own(run, how):
    run("children", how, CHILDREN, "exit", "3", expect=3)
    begun = ids(run, "begin")
    assert len(begun) == {"vfork": 4, "fork": 3}.get(how, 2) == len(set(begun)) and begun[0] == "0" * 16
    assert sorted(ids(run, "end")) == sorted(begun)
    first = begun
    run("children", how, CHILDREN, "exit", "3", expect=3)
    assert ids(run, "begin") == first


@pytest.mark.parametrize("how", ["execl", "execlp"])
def test_exec_with_a_list_of_arguments(run, how):
    run("children", how, CHILDREN, expect=5)
    assert [line["how"] for line in run.lines if "end" in line] == ["exec", "exit"]


def test_a_given_environment_is_passed_as_it_is_and_what_leaves_the_interposer_behind_is_named(run):
    assert run("children", "execle", CHILDREN) == "1\n"
    assert [event["subject"] for event in run.events("without-preload")] == [str(CHILDREN)]
    assert len(ids(run, "begin")) == 1


def test_an_exec_that_fails_goes_on(run):
    assert run("children", "exec-fails") == "2\n"
    assert ids(run, "end") == ["0" * 16]


def test_system_and_popen(run):
    run("children", "system", "exit 3", expect=3)
    system = ids(run, "begin")
    assert len(set(system)) == 2
    assert run("children", "popen", "echo hello; exit 2", expect=2) == "hello\n"
    assert len(set(ids(run, "begin"))) == 2


def test_forks_among_threads(run):
    run("children", "threads")
    assert len(set(ids(run, "begin"))) == 51 and len(ids(run, "end")) == 51


def test_a_static_program_works_and_is_named(run):
    run("children", "fork", PROGRAMS / "static", "exit", "3", expect=3)
    run("children", "spawn", PROGRAMS / "static", "exit", "3", expect=3)
    assert [event["subject"] for event in run.events("static-program")] == [str(PROGRAMS / "static")]


def test_a_script_of_a_static_interpreter_is_named(run, tmp_path):
    script = tmp_path / "script"
    script.write_text(f"#!{PROGRAMS / 'static'} exit\n")
    script.chmod(0o755)
    run("children", "vfork", script, expect=ord("/") - ord("0") & 255)
    assert {event["subject"] for event in run.events("static-program")} == {str(script)}


def test_a_program_with_address_sanitizer_starts_without_us(run, tmp_path):
    compiler = shutil.which("gcc")
    source = tmp_path / "asan.c"
    source.write_text("#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n")
    made = subprocess.run([compiler, "-fsanitize=address", "-o", tmp_path / "asan", source], capture_output=True) \
        if compiler else None
    if made is None or made.returncode != 0:
        pytest.skip("no gcc with AddressSanitizer")
    assert run("children", "fork", tmp_path / "asan") == "hello\n"
    assert [event["subject"] for event in run.events("sanitizer-program")] == [str(tmp_path / "asan")]


def test_the_users_own_preload_stays(run, tmp_path):
    other = PROGRAMS / "lib/libplain.so"
    both = f"{LIBRARY}:{other}"
    assert run("children", "fork", CHILDREN, "print", "LD_PRELOAD", preload=both) == both + "\n"
    assert str(other) in [item[0] for item in run.objects()]


def test_objects_have_what_identifies_their_files(run):
    run("children", "exit")
    by_path = {item[0]: item for item in run.objects()}
    path, build_id, device, inode, size, seconds, nanoseconds = by_path[str(CHILDREN)]
    st = os.stat(CHILDREN)
    assert [device, inode, size] == [st.st_dev, st.st_ino, st.st_size]
    assert seconds * 10**9 + nanoseconds == st.st_mtime_ns
    assert str(LIBRARY) in by_path and len(by_path[str(LIBRARY)][1]) == 40


def test_a_report_that_cannot_be_written_hinders_nobody(run):
    run("children", "exit", env={"TRAINCTL_REPORT": "/nowhere/at/all"})
    run("children", "exit", env={"TRAINCTL_REPORT": "relative"})
    run("children", "exit", env={"TRAINCTL_REPORT": "/" + "x" * 5000})
    (run.report / "interposer.jsonl").mkdir()
    run.report, there = run.report / "elsewhere", run.report
    run("children", "exit", env={"TRAINCTL_REPORT": str(there)})


def test_a_file_size_limit_of_the_programs_is_no_trap(run):
    run("/bin/sh", "-c", "ulimit -f 1; for i in 1 2 3 4 5 6 7 8; do /bin/true; done; echo done")


def test_few_descriptors_are_no_trap(run):
    assert run("/bin/sh", "-c", "ulimit -n 4; echo done") == "done\n"
