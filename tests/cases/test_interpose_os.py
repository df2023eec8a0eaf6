# SPDX-License-Identifier: Apache-2.0
"""What comes from the operating system and from other people's libraries: reports A11, B18 and B19, and faults without a number."""
import ctypes
import json
import os
import platform

import pytest

PROGRAM_THAT_SPLITS = """
    import os, random
    files = os.listdir("data")
    random.Random(0).shuffle(files)
    with open(os.path.join(os.environ["TRAINCTL_OUT"], "train.txt"), "w") as f:
        f.write("\\n".join(files[:20]))
    """


def raw_order(folder):
    """A folder's names as the kernel gives them, by the system call that the interposer does not see."""
    number = {"x86_64": 217, "aarch64": 61}.get(platform.machine())
    if number is None:
        pytest.skip("no number of getdents64 for this machine")
    fd, block, names = os.open(folder, os.O_RDONLY), ctypes.create_string_buffer(1 << 16), []
    while (size := ctypes.CDLL(None).syscall(number, fd, block, len(block))) > 0:
        at = 0
        while at < size:
            length = int.from_bytes(block.raw[at + 16:at + 18], "little")
            names.append(block.raw[at + 19:at + length].split(b"\0")[0].decode())
            at += length
    os.close(fd)
    return [name for name in names if name not in (".", "..")]


def test_a11_the_order_of_a_folder_does_not_decide_the_split(lab, python):
    names = ["image-%03d.png" % (i * 37 % 101) for i in range(101)]
    for name in names:
        lab.write("data/" + name, "")
    raw = raw_order(lab.folder / "data")
    assert sorted(raw) == sorted(names) and raw != sorted(raw), "the kernel's own order is another"
    lab.write("split.py", PROGRAM_THAT_SPLITS)
    lab.plain(python + " split.py")
    plain = (lab.plain_out / "train.txt").read_text()
    lab.spec(python + " split.py", outputs=["train.txt"])
    first = lab.run().out("train.txt")
    assert first != plain
    for name in reversed(names):  # the same files, laid down in another order
        os.rename(lab.folder / "data" / name, lab.folder / "data" / ("moved-" + name))
    for name in sorted(names):
        os.rename(lab.folder / "data" / ("moved-" + name), lab.folder / "data" / name)
    assert lab.run().out("train.txt") == first


SUM_OF_SMALL_NUMBERS = """
    #include <dlfcn.h>
    #include <stdio.h>
    #include <stdlib.h>
    int main(void)
    {
        volatile float sum = 0, small = 1e-39f;
        if (getenv("WITH_FILTER") != NULL && dlopen("./filter.so", RTLD_NOW) == NULL)
            return 1;
        for (int i = 0; i < 1000; i++)
            sum += small;
        char path[4096];
        snprintf(path, sizeof path, "%s/sum", getenv("TRAINCTL_OUT"));
        FILE *f = fopen(path, "w");
        fprintf(f, "%a\\n", (double)sum);
        return fclose(f);
    }
    """

FAST_FILTER = """
    #include <stdint.h>
    __attribute__((constructor)) static void set_fast_math(void)
    {
    #if defined(__x86_64__)
        __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040u);
    #else
        uint64_t control;
        __asm__ volatile("mrs %0, fpcr" : "=r"(control));
        __asm__ volatile("msr fpcr, %0" : : "r"(control | (uint64_t)1 << 24));
    #endif
    }
    """


def test_b19_a_library_built_with_fast_math_does_not_change_all_later_arithmetic(lab):
    lab.compile("sum.c", SUM_OF_SMALL_NUMBERS, "-ldl")
    lab.compile("filter.c", FAST_FILTER, "-shared")

    def plain(**env):
        lab.plain("./sum", env=env)
        return (lab.plain_out / "sum").read_text()
    without = plain()
    assert plain(WITH_FILTER="1") == "0x0p+0\n" != without, "the library alone changes the sum"
    lab.spec("WITH_FILTER=1 ./sum", outputs=["sum"])
    run = lab.run()
    assert run.out("sum") == without
    event, = [e for e in run.manifest["interposer"]["events"] if e["what"] == "fp-environment"]
    assert event["subject"].endswith("filter.so") and "FTZ" in event["detail"]


def test_b19_with_the_knob_off_the_library_has_its_way(lab):
    lab.compile("sum.c", SUM_OF_SMALL_NUMBERS, "-ldl")
    lab.compile("filter.c", FAST_FILTER, "-shared")
    lab.spec("WITH_FILTER=1 ./sum", outputs=["sum"], determinism={"denormals": "off"})
    assert lab.run().out("sum") == "0x0p+0\n"


DECODE = """
    #include <dlfcn.h>
    #include <stdio.h>
    #include <stdlib.h>
    int main(void)
    {
        union { void *object; int (*function)(int); } u;
        void *decoder = dlopen(getenv("DECODER"), RTLD_NOW);
        char path[4096];
        u.object = decoder == NULL ? NULL : dlsym(decoder, "decode");
        if (u.object == NULL)
            return 1;
        snprintf(path, sizeof path, "%s/pixels", getenv("TRAINCTL_OUT"));
        FILE *f = fopen(path, "w");
        for (int i = 0; i < 100; i++)
            fprintf(f, "%d\\n", u.function(i));
        return fclose(f);
    }
    """

DECODER = "int decode(int x) { return (x * 77 + %d) >> 8; }\n"


def library_of(run, name):
    found = [o for o in run.manifest["shared_objects"] if o["path"].endswith("/" + name)]
    assert len(found) == 1, found
    return found[0]


def test_b18_another_decoder_behind_the_same_program_is_named_by_its_digest(lab, tmp_path_factory):
    # A library of the machine's: outside the folder whose code is captured.
    system = tmp_path_factory.mktemp("system")
    installed = system / "libdecoder.so"
    lab.env["XDG_CACHE_HOME"] = str(system)

    def install(rounding):
        os.replace(lab.compile("libdecoder.c", DECODER % rounding, "-shared"), installed)
        os.unlink(lab.folder / "libdecoder.c")
    lab.compile("decode.c", DECODE, "-ldl")
    install(0)
    lab.spec("DECODER=%s ./decode" % installed, outputs=["pixels"])
    first = lab.run()
    assert lab.verify(first.id)["verdict"] == "identical"
    install(128)
    second = lab.run()
    assert first.out("pixels") != second.out("pixels")
    was, now = library_of(first, "libdecoder.so"), library_of(second, "libdecoder.so")
    assert was["path"] == now["path"] == str(installed) and was["sha256"] != now["sha256"] != None
    told = lab.trainctl("diff", first.id, second.id, expect=1)
    assert told.startswith("stage shared objects") and str(installed) in told.splitlines()[0]
    verified = lab.trainctl("verify", first.id, expect=2) + lab.stderr
    assert "library '%s'" % installed in verified


TIME_SEEDED = """
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/time.h>
    int main(void)
    {
        struct timeval now;
        char path[4096];
        gettimeofday(&now, NULL);
        srand((unsigned)(now.tv_sec ^ now.tv_usec));
        snprintf(path, sizeof path, "%s/weights", getenv("TRAINCTL_OUT"));
        FILE *f = fopen(path, "w");
        for (int i = 0; i < 10; i++)
            fprintf(f, "%d\\n", rand());
        return fclose(f);
    }
    """


def test_planted_a_time_seeded_generator_is_named_and_repeats(lab):
    lab.compile("init.c", TIME_SEEDED)

    def plain():
        lab.plain("./init")
        return (lab.plain_out / "weights").read_text()
    assert plain() != plain()
    lab.spec("./init", outputs=["weights"])
    run = lab.run()
    event, = [e for e in run.manifest["interposer"]["events"] if e["what"] == "time-seeded"]
    assert event["subject"] == "srand" and event["program"].endswith("/init")
    assert lab.verify(run.id)["verdict"] == "identical"
    assert lab.run("--seed", "7").out("weights") != run.out("weights")


def test_planted_a_time_seeded_generator_is_named_where_it_is_not_replaced(lab):
    lab.compile("init.c", TIME_SEEDED)
    lab.spec("./init", outputs=["weights"], determinism={"libc_seeds": False})
    run = lab.run()
    assert [e["subject"] for e in run.manifest["interposer"]["events"] if e["what"] == "time-seeded"] == ["srand"]
    assert run.out("weights") != lab.run().out("weights")


ENTROPY = """
    import os
    with open(os.path.join(os.environ["TRAINCTL_OUT"], "key"), "wb") as f:
        f.write(os.urandom(32))
        f.write(open("/dev/urandom", "rb", buffering=0).read(8))
    """


def test_entropy_is_counted_and_answered_only_where_the_spec_says_so(lab, python):
    lab.write("key.py", ENTROPY)
    lab.spec(python + " key.py", outputs=["key"])
    first, second = lab.run(), lab.run()
    sums = {}
    for program in first.manifest["interposer"]["programs"]:
        for name, count in program["counts"].items():
            sums[name] = sums.get(name, 0) + count
    assert sums["getrandom"] >= 1 and sums["urandom"] == 1
    assert first.result != second.result
    lab.spec(python + " key.py", outputs=["key"], determinism={"entropy": "seeded"})
    assert lab.run().result == lab.run().result


def test_a_static_program_runs_and_is_listed_as_uncontrolled(lab):
    lab.compile("init.c", TIME_SEEDED, "-static")
    lab.spec("./init && echo done", outputs=["weights"])
    run = lab.run()
    assert "done" in run.log
    names = [item["what"] for item in run.manifest["uncontrolled"]]
    assert any(name.startswith("static program '") and name.endswith("/init'") for name in names), names


def test_a_killed_process_is_listed_as_uncontrolled(lab):
    lab.spec("sh -c 'kill -9 $$'; true")
    run = lab.run()
    assert run.manifest["interposer"]["unreported"] == 1
    assert any("ended without a report" in item["why"] for item in run.manifest["uncontrolled"])


def test_the_interposer_can_be_left_out(lab):
    lab.spec("./init", outputs=["weights"], determinism={"interposer": False})
    lab.compile("init.c", TIME_SEEDED)
    run = lab.run()
    assert run.manifest["interposer"] is None
    assert json.dumps(run.manifest["envelope"]["interposer"]) == "null"
