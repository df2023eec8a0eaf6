# SPDX-License-Identifier: Apache-2.0
"""Faults planted on purpose, one kind a test: what `verify` says must be their name, and of the last that it is not known.

Each program writes its result to one file. Where a kind is one of chance, the fault is made sure to show: a test that
is right by luck is none.
"""
import shutil

import conftest
import pytest

needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")

# Writes a result for `verify` to compare.
REPORT = r"""
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <pthread.h>
    #include <stdint.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/stat.h>
    #include <time.h>
    #include <unistd.h>
    static int report(double value)
    {
        char path[4096];
        snprintf(path, sizeof path, "%s/result.txt", getenv("TRAINCTL_OUT"));
        FILE *file = fopen(path, "w");
        return file == NULL || fprintf(file, "%a\n", value) < 0 || fclose(file) != 0;
    }
"""


def plant(lab, name, program, *flags, command=None, **spec):
    lab.compile(name + ".c", REPORT + program, *flags)
    lab.spec(command or f"./{name}", outputs=["result.txt"], contract="machine", **spec)
    return lab.run()


def deep(lab, *words, expect=1):
    """The verdict of a deep look."""
    said = lab.verify("last", "--deep", *words, expect=expect)
    return said, said["first_divergence"]


def assert_depends_on(lab, *circumstances):
    said, first = deep(lab)
    assert said["verdict"] == "differs" and said["self"] == "disagrees"
    assert first["stage"] == "output"
    assert first["circumstances"] == list(circumstances), said["probes"]
    assert first["advice"] and "disagrees with itself" in said["reason"]
    return said


# ---- chance ------------------------------------------------------------------------------------------------


@needs_compiler
def test_race_in_a_reduction(lab):
    """Threads add to one sum, and it is read when one of them has done its part, not all: how far the others are, and in
    which order they added, is chance."""
    plant(lab, "race", r"""
        static double sum;
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static void add(intptr_t who, int n)
        {
            for (int i = 0; i < n; i++) {
                double part = (i % 2 ? 1e9 : -1e-3) / ((double)who * 1e6 + i + 1);
                pthread_mutex_lock(&lock);
                sum += part;
                pthread_mutex_unlock(&lock);
            }
        }
        static void *work(void *arg)
        {
            add((intptr_t)arg, 600000);
            return NULL;
        }
        int main(void)
        {
            pthread_t threads[4];
            for (intptr_t i = 0; i < 4; i++)
                pthread_create(&threads[i], NULL, work, (void *)i);
            add(4, 20000);
            pthread_mutex_lock(&lock);
            double seen = sum;
            pthread_mutex_unlock(&lock);
            for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
            return report(seen);
        }
    """, "-pthread")
    said = assert_depends_on(lab, "threads")
    assert "the order in which threads run" in said["reason"]


@needs_compiler
def test_lost_updates(lab):
    """A counter that is raised without a lock: the classic data race."""
    plant(lab, "lost", r"""
        static volatile long counter;
        static void *raise(void *arg)
        {
            for (int i = 0; i < 3000000; i++)
                counter++;
            return arg;
        }
        int main(void)
        {
            pthread_t threads[4];
            for (int i = 0; i < 4; i++)
                pthread_create(&threads[i], NULL, raise, NULL);
            for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
            return report(counter);
        }
    """, "-pthread")
    assert_depends_on(lab, "threads")


@needs_compiler
def test_uninitialised_read(lab):
    """The end of an array that nobody wrote holds what was there before: here the time of some event."""
    plant(lab, "uninitialised", r"""
        int main(void)
        {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            char *events = malloc(4000);
            for (int i = 0; i < 4000; i += 8)
                memcpy(events + i, &now.tv_nsec, 8);
            __asm__ volatile("" : : "r"(events) : "memory");
            free(events);
            uint16_t *weights = malloc(4000);
            double sum = 0;
            for (int i = 0; i < 500; i++)
                weights[i] = (uint16_t)i;
            for (int i = 0; i < 2000; i++)
                sum += weights[i];
            return report(sum);
        }
    """)
    said = assert_depends_on(lab, "memory")
    assert said["first_divergence"]["confidence"] == "certain"
    assert "memory that nobody has initialised" in said["reason"]


@needs_compiler
def test_time_seeded_generator_in_c(lab):
    """A generator of its own, so that no seeding of libc's helps."""
    plant(lab, "seeded", r"""
        int main(void)
        {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            uint64_t state = (uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec;
            for (int i = 0; i < 100; i++)
                state = state * 6364136223846793005u + 1442695040888963407u;
            return report((double)(state >> 11));
        }
    """)
    said = assert_depends_on(lab, "clock")
    assert "the clock" in said["reason"]


def test_time_seeded_generator_in_python(lab, python):
    lab.write("train.py", """
        import os, random, time
        order = list(range(1000))
        random.Random(time.time_ns()).shuffle(order)
        with open(os.path.join(os.environ["TRAINCTL_OUT"], "result.txt"), "w") as f:
            f.write(repr(order))
    """)
    lab.spec(f"{python} train.py", outputs=["result.txt"])
    lab.run()
    assert_depends_on(lab, "clock")


def test_clock_in_an_output(lab):
    lab.spec("date +%s%N >$TRAINCTL_OUT/result.txt", outputs=["result.txt"])
    lab.run()
    assert_depends_on(lab, "clock")


def test_file_time_in_an_output(lab):
    lab.spec("touch $TRAINCTL_OUT/mark; stat -c %y $TRAINCTL_OUT/mark >$TRAINCTL_OUT/result.txt", outputs=["result.txt"])
    lab.run()
    assert_depends_on(lab, "file times")


def test_entropy_of_the_system(lab):
    lab.spec("od -An -N8 -tx8 /dev/urandom >$TRAINCTL_OUT/result.txt", outputs=["result.txt"])
    lab.run()
    said = assert_depends_on(lab, "entropy")
    assert any("asked the system for random numbers" in s for s in said["first_divergence"]["suspects"])


@needs_compiler
def test_order_of_addresses(lab):
    """Objects are sorted by where they lie, and the randomisation of addresses is left on."""
    plant(lab, "addresses", r"""
        int main(void)
        {
            static int fixed;
            int *on_heap = malloc(sizeof *on_heap);
            uint64_t hash = (uint64_t)(uintptr_t)on_heap * 31 + (uint64_t)(uintptr_t)&fixed;
            return report((double)(hash >> 4));
        }
    """, determinism={"addresses": "random"})
    assert_depends_on(lab, "addresses")


def test_order_of_a_set_of_strings(lab, python):
    lab.write("train.py", """
        import os
        with open(os.path.join(os.environ["TRAINCTL_OUT"], "result.txt"), "w") as f:
            f.write(",".join({"cat%d" % i for i in range(50)}))
    """)
    lab.spec(f"{python} train.py", outputs=["result.txt"], determinism={"unpin": ["PYTHONHASHSEED"]})
    lab.run()
    assert_depends_on(lab, "hash")


@needs_compiler
def test_clock_and_entropy_together(lab):
    """Neither alone makes it agree; with both held still it does."""
    plant(lab, "both", r"""
        int main(void)
        {
            struct timespec now;
            uint64_t bits = 0;
            clock_gettime(CLOCK_REALTIME, &now);
            int fd = open("/dev/urandom", O_RDONLY);
            if (fd < 0 || read(fd, &bits, 4) != 4)
                return 1;
            return report((double)bits + (double)now.tv_nsec * 0x1p-31);
        }
    """)
    assert_depends_on(lab, "clock", "entropy")


def test_process_id_is_not_known(lab):
    """Nothing that trainctl holds still: it says that it does not know."""
    lab.spec("echo $$ >$TRAINCTL_OUT/result.txt", outputs=["result.txt"])
    lab.run()
    said, first = deep(lab)
    assert said["self"] == "disagrees" and first["circumstances"] == []
    assert first["confidence"] == "unknown" and "not known" in said["reason"]
    assert said["probes"][-1]["probe"] == "all" and not said["probes"][-1]["agrees"]


# ---- change ------------------------------------------------------------------------------------------------

SCALE = r"""
    double scale(double x) { return x * FACTOR; }
"""
USES_SCALE = r"""
    #include <dlfcn.h>
    int main(void)
    {
        void *library = dlopen("LIBRARY", RTLD_NOW);
        double (*scale)(double) = library == NULL ? NULL : (double (*)(double))dlsym(library, "scale");
        volatile double tiny = 1e-310, half = 0.5;
        return scale == NULL || report(scale(3) + tiny * half * 1e305);
    }
"""


@pytest.fixture
def libraries(tmp_path_factory):
    """A folder outside the code that is recorded."""
    return conftest.Lab(tmp_path_factory.mktemp("libraries"))


def plant_library(lab, libraries, **spec):
    library = libraries.compile("scale.c", SCALE, "-shared", "-DFACTOR=2.0")
    plant(lab, "uses", USES_SCALE.replace("LIBRARY", str(library)), "-ldl", **spec)


@needs_compiler
def test_changed_library(lab, libraries):
    plant_library(lab, libraries)
    libraries.compile("scale.c", SCALE, "-shared", "-DFACTOR=2.5")
    said = lab.verify(expect=2)
    first = said["first_divergence"]
    assert said["verdict"] == "unverifiable" and first["stage"] == "shared objects"
    assert "scale.so' has other bytes; first seen: output 'result.txt' has other bytes" in said["reason"]
    said, first = deep(lab, expect=2)
    assert said["self"] == "agrees" and first["stage"] == "shared objects"


@needs_compiler
def test_library_with_flush_to_zero(lab, libraries):
    """Rebuilt with -ffast-math, whose start-up code flushes denormals for the whole process; the spec lets it."""
    plant_library(lab, libraries, determinism={"denormals": "off"})
    libraries.compile("scale.c", SCALE, "-shared", "-DFACTOR=2.0", "-ffast-math")
    said, first = deep(lab, expect=2)
    assert first["stage"] == "shared objects" and first["circumstances"] == ["denormals"]
    assert first["confidence"] == "certain" and "flush-to-zero" in said["reason"]
    assert any("scale.so' has other bytes" in cause["what"] for cause in first["causes"])


@needs_compiler
def test_library_with_flush_to_zero_is_put_right(lab, libraries):
    """The same with the spec's defaults: results stay, and the library is named."""
    plant_library(lab, libraries)
    libraries.compile("scale.c", SCALE, "-shared", "-DFACTOR=2.0", "-ffast-math")
    assert lab.verify()["verdict"] == "identical"
    events = lab.run().manifest["interposer"]["events"]
    assert any(e["what"] == "fp-environment" and e["subject"].endswith("scale.so") for e in events)


def test_changed_data_file(lab):
    lab.write("data/train.csv", "1,2\n")
    lab.spec("cat data/train.csv >$TRAINCTL_OUT/result.txt", outputs=["result.txt"], data={"train": {"path": "data"}})
    lab.run()
    lab.write("data/train.csv", "1,3\n")
    said = lab.verify(expect=2)
    assert said["verdict"] == "unverifiable" and said["first_divergence"]["stage"] == "data bytes"
    assert said["first_divergence"]["confidence"] == "certain" and "train.csv" in said["reason"]
    said = lab.verify("last", "--anyway", expect=1)
    assert said["first_divergence"]["stage"] == "data bytes"
    assert "first seen: output 'result.txt' has other bytes" in said["reason"]


def test_new_data_file(lab):
    lab.write("data/a.csv", "1\n")
    lab.spec("cat data/*.csv >$TRAINCTL_OUT/result.txt", outputs=["result.txt"], data={"train": {"path": "data"}})
    lab.run()
    lab.write("data/b.csv", "2\n")
    said = lab.verify(expect=2)
    assert said["first_divergence"]["stage"] == "data list" and "b.csv" in said["reason"]


def test_another_thread_count(lab):
    """As many partial sums as threads: another number of them rounds otherwise."""
    lab.write("sum.sh", """
        awk -v n=$OMP_NUM_THREADS 'BEGIN {
            for (i = 1; i <= 1000; i++) part[i % n] += 1 / (i * i * 3.7)
            for (i = 0; i < n; i++) sum += part[i]
            printf "%.17g\\n", sum }' >$TRAINCTL_OUT/result.txt
    """)
    lab.spec("sh sum.sh", outputs=["result.txt"], resources={"threads": 4})
    lab.run()
    said = lab.verify("last", "--threads", "3", expect=1)
    assert said["first_divergence"]["stage"] == "environment"
    assert "thread counts" in said["reason"] and "was '4', is '3'" in said["reason"]
    said, first = deep(lab, "--threads", "3")
    assert said["self"] == "agrees" and first["circumstances"] == ["recorded threads"]
    assert first["confidence"] == "certain" and "number of threads" in said["reason"]
