# SPDX-License-Identifier: Apache-2.0
"""libtrainctl-probe.so alone, in front of small programs: what each word of TRAINCTL_PROBE holds still, and that without
one nothing is."""
import shutil

import conftest
import pytest

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
LIBRARY = str(conftest.BUILD / "lib/trainctl/libtrainctl-probe.so")


def under(lab, command, probe=""):
    """What the command prints under the library."""
    return lab.plain(command, env={"LD_PRELOAD": LIBRARY, "TRAINCTL_PROBE": probe})


TIMES = r"""
    #include <stdio.h>
    #include <sys/time.h>
    #include <time.h>
    int main(void)
    {
        struct timespec a, b;
        struct timeval c;
        clock_gettime(CLOCK_MONOTONIC, &a);
        clock_gettime(CLOCK_REALTIME, &b);
        gettimeofday(&c, NULL);
        printf("%ld.%09ld %ld.%09ld %ld.%06ld %ld %ld\n", (long)a.tv_sec, a.tv_nsec, (long)b.tv_sec, b.tv_nsec,
               (long)c.tv_sec, (long)c.tv_usec, (long)time(NULL), (long)clock());
        return 0;
    }
"""


def test_clock_is_the_same_in_every_run_and_goes_on(lab):
    program = lab.compile("times.c", TIMES)
    first = under(lab, str(program), "clock")
    assert first == under(lab, str(program), "clock")
    assert first.split()[:3] == ["1.000000000", "1577836800.001000000", "1577836800.002000"]
    assert under(lab, str(program)) != under(lab, str(program))


def test_waiting_for_a_time_ends_under_the_fixed_clock(lab):
    program = lab.compile("wait.c", r"""
        #include <time.h>
        int main(void)
        {
            time_t begin = time(NULL);
            while (time(NULL) < begin + 3)
                continue;
            return 0;
        }
    """)
    under(lab, str(program), "clock")


def test_files_have_one_age(lab):
    lab.write("a", "")
    ages = under(lab, "stat -c '%Y %X %Z' a; touch a; stat -c '%Y %X %Z' a", "files").split()
    assert set(ages) == {"1577836800"}
    assert "1577836800" not in under(lab, "stat -c %Y a")


STACK = r"""
    #include <pthread.h>
    #include <stdio.h>
    static __attribute__((noinline)) int count(int value)
    {
        volatile unsigned char below[100000];
        int n = 0;
        for (int i = 0; i < 50000; i++)
            n += below[i] == value;
        return n;
    }
    static void *run(void *arg)
    {
        printf("thread %d\n", count(170));
        return arg;
    }
    int main(void)
    {
        pthread_t thread;
        printf("main %d\n", count(170));
        fflush(stdout);
        pthread_create(&thread, NULL, run, NULL);
        pthread_join(thread, NULL);
        return 0;
    }
"""


def test_stacks_are_filled(lab):
    program = lab.compile("stack.c", STACK, "-pthread", "-Wno-uninitialized", "-Wno-maybe-uninitialized")
    assert under(lab, str(program), "fill=170").split() == ["main", "50000", "thread", "50000"]
    assert under(lab, str(program)).split() == ["main", "0", "thread", "0"]


THREADS = r"""
    #include <pthread.h>
    #include <stdio.h>
    #include <unistd.h>
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static void *work(void *arg)
    {
        volatile double x = 0;
        for (long i = 0; i < 4000000 / ((long)arg + 1); i++)
            x += 1;
        pthread_mutex_lock(&lock);
        printf("%ld ", (long)arg);
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    int main(int argc, char **argv)
    {
        (void)argv;
        pthread_t threads[8];
        if (argc > 1) /* the threads wait for their creator, who must not wait for them */
            pthread_mutex_lock(&lock);
        for (long i = 0; i < 8; i++)
            pthread_create(&threads[i], NULL, work, (void *)i);
        if (argc > 1)
            pthread_mutex_unlock(&lock);
        for (int i = 0; i < 8; i++)
            pthread_join(threads[i], NULL);
        return 0;
    }
"""


def test_threads_run_in_the_order_of_their_creation(lab):
    program = lab.compile("threads.c", THREADS, "-pthread")
    for _ in range(3):
        assert under(lab, str(program), "threads").split() == [str(i) for i in range(8)]


def test_threads_that_wait_for_their_creator_are_no_deadlock(lab):
    program = lab.compile("threads.c", THREADS, "-pthread")
    assert sorted(under(lab, f"{program} wait", "threads").split()) == [str(i) for i in range(8)]


def test_a_thread_that_ends_itself_is_no_deadlock(lab):
    program = lab.compile("exit.c", r"""
        #include <pthread.h>
        #include <stdio.h>
        static void *leave(void *arg)
        {
            pthread_exit(arg);
        }
        int main(void)
        {
            pthread_t thread;
            void *result = NULL;
            pthread_create(&thread, NULL, leave, (void *)7);
            pthread_join(thread, &result);
            printf("%ld\n", (long)result);
            return 0;
        }
    """, "-pthread")
    assert under(lab, str(program), "threads fill=1").strip() == "7"
