/* SPDX-License-Identifier: Apache-2.0 */
/* The stat cache: what it may remember, what it survives, and several processes at once. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/file.h"
#include "manifest/stat_cache.h"

static char folder[] = "/tmp/tctl-statcache-XXXXXX";
static char path[128];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/tctl-statcache-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/cache/stat-v1", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return tctl_remove_tree(folder, NULL);
}

#define SECOND INT64_C(1000000000)

/* A file that was last changed a thousand seconds before `looked`. */
static const int64_t looked = 2000 * SECOND;

static struct stat old_stat(uint64_t inode)
{
    struct stat st;
    memset(&st, 0, sizeof st);
    st.st_mode = S_IFREG | 0644;
    st.st_ino = inode;
    st.st_size = (off_t)(inode * 10);
    st.st_mtim = (struct timespec){1000, 5};
    st.st_ctim = (struct timespec){1000, 6};
    return st;
}

static tctl_sha256 digest_of(uint64_t n)
{
    return tctl_sha256_of(&n, sizeof n);
}

static const char *name_of(uint64_t n)
{
    static char name[64];
    snprintf(name, sizeof name, "/data/%llu.jpg", (unsigned long long)n);
    return name;
}

static void put(tctl_stat_cache *cache, uint64_t n)
{
    struct stat st = old_stat(n);
    tctl_sha256 digest = digest_of(n);
    tctl_stat_cache_put_at(cache, name_of(n), &st, looked, &digest);
}

static bool has(tctl_stat_cache *cache, uint64_t n)
{
    struct stat st = old_stat(n);
    tctl_sha256 digest, expected = digest_of(n);
    if (!tctl_stat_cache_get(cache, name_of(n), &st, &digest))
        return false;
    assert_true(tctl_sha256_equal(&digest, &expected));
    return true;
}

/* Opens without a warning. */
static tctl_stat_cache *open_clean(void)
{
    tctl_error why;
    tctl_stat_cache *cache = tctl_stat_cache_open(path, &why);
    assert_non_null(cache);
    if (why.code != TCTL_OK)
        fail_msg("%s", why.message);
    return cache;
}

static void fill(uint64_t from, uint64_t to)
{
    tctl_stat_cache *cache = open_clean();
    for (uint64_t n = from; n < to; n++)
        put(cache, n);
    tctl_error err = {0};
    assert_int_equal(tctl_stat_cache_flush(cache, &err), TCTL_OK);
    tctl_stat_cache_close(cache);
}

static uint64_t count(uint64_t to)
{
    tctl_stat_cache *cache = open_clean();
    uint64_t n = 0;
    for (uint64_t i = 0; i < to; i++)
        n += has(cache, i);
    tctl_stat_cache_close(cache);
    return n;
}

static off_t file_size(void)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static void digests_are_remembered_across_processes(void **state)
{
    (void)state;
    tctl_stat_cache *cache = open_clean();
    assert_false(has(cache, 1));
    for (uint64_t n = 1; n <= 1000; n++)
        put(cache, n);
    assert_true(has(cache, 1) && has(cache, 1000)); /* before they are written */
    tctl_stat_cache_close(cache);
    assert_int_equal(count(1002), 1000);
    fill(1000, 1010); /* number 1000 is known: only nine are appended */
    assert_int_equal(count(1020), 1009);
}

static void any_change_of_the_token_is_a_miss(void **state)
{
    (void)state;
    fill(1, 2);
    tctl_stat_cache *cache = open_clean();
    tctl_sha256 digest;
    for (int field = 0; field < 6; field++) {
        struct stat st = old_stat(1);
        st.st_ino += field == 0;
        st.st_size += field == 1;
        st.st_mtim.tv_nsec += field == 2;
        st.st_ctim.tv_nsec += field == 3;
        st.st_mtim.tv_sec -= field == 4;
        if (field == 5)
            st.st_mode = S_IFLNK | 0777;
        assert_false(tctl_stat_cache_get(cache, name_of(1), &st, &digest));
    }
    struct stat st = old_stat(1);
    assert_false(tctl_stat_cache_get(cache, "/data/1.jp", &st, &digest));
    st.st_dev = 77; /* device numbers change with a reboot */
    assert_true(tctl_stat_cache_get(cache, name_of(1), &st, &digest));
    tctl_stat_cache_close(cache);
}

static bool remembers(int64_t mtime, int64_t ctime, int64_t when)
{
    struct stat st = old_stat(7);
    st.st_mtim = (struct timespec){mtime / SECOND, mtime % SECOND};
    st.st_ctim = (struct timespec){ctime / SECOND, ctime % SECOND};
    tctl_stat_cache *cache = tctl_stat_cache_open(NULL, NULL);
    tctl_sha256 digest = digest_of(7), back;
    tctl_stat_cache_put_at(cache, "/x", &st, when, &digest);
    bool found = tctl_stat_cache_get(cache, "/x", &st, &back);
    tctl_stat_cache_close(cache);
    return found;
}

/* Git's rule: it could change again within the same tick, and nobody would see. */
static void a_file_changed_just_before_it_was_looked_at_is_not_remembered(void **state)
{
    (void)state;
    const int64_t now = 5000 * SECOND + 123456789, old = now - 100 * SECOND;
    assert_true(remembers(old, old, now));
    assert_false(remembers(now, old, now));
    assert_false(remembers(old, now, now));
    assert_false(remembers(now + SECOND, old, now)); /* from the future */
    assert_false(remembers(now - SECOND / 100, old, now));
    assert_true(remembers(now - SECOND / 10, old, now));
    /* Timestamps without a fraction come from a coarse file system. */
    assert_false(remembers(4999 * SECOND, 4999 * SECOND, now));
    assert_true(remembers(4997 * SECOND, 4997 * SECOND, now));
    /* Without a moment the cache's opening counts: this file is younger. */
    tctl_stat_cache *cache = tctl_stat_cache_open(NULL, NULL);
    struct stat st = old_stat(7);
    clock_gettime(CLOCK_REALTIME, &st.st_mtim);
    tctl_sha256 digest = digest_of(7), back;
    tctl_stat_cache_put(cache, "/x", &st, &digest);
    assert_false(tctl_stat_cache_get(cache, "/x", &st, &back));
    st = old_stat(7);
    tctl_stat_cache_put(cache, "/x", &st, &digest);
    assert_true(tctl_stat_cache_get(cache, "/x", &st, &back));
    tctl_stat_cache_close(cache);
}

static void a_torn_tail_is_ignored_and_mended(void **state)
{
    (void)state;
    fill(1, 4);
    off_t whole = file_size();
    for (off_t cut = 1; cut < 90; cut += 7) { /* a record here has 96 bytes */
        assert_int_equal(truncate(path, whole - cut), 0);
        assert_int_equal(count(4), 2); /* opens without a warning */
        fill(3, 4);
        assert_int_equal(file_size(), whole);
        assert_int_equal(count(4), 3);
    }
    /* What a power cut may leave: zeros that were to be records. */
    assert_int_equal(truncate(path, whole + 5000), 0);
    assert_int_equal(count(4), 3);
    fill(10, 11);
    assert_int_equal(count(11), 4);
    /* A header cut short. */
    for (off_t size = 0; size < 16; size += 5) {
        assert_int_equal(truncate(path, size), 0);
        assert_int_equal(count(4), 0);
        fill(1, 3);
        assert_int_equal(count(4), 2);
    }
}

static void flip(off_t offset)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    unsigned char byte;
    assert_int_equal(pread(fd, &byte, 1, offset), 1);
    byte ^= 0x40;
    assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
}

static void damage_gives_one_warning_and_is_mended(void **state)
{
    (void)state;
    fill(1, 4);
    off_t record = (file_size() - 16) / 3;
    for (off_t i = 0; i < record; i++) {
        unlink(path);
        fill(1, 4);
        flip(16 + record + i);
        tctl_error why;
        tctl_stat_cache *cache = tctl_stat_cache_open(path, &why);
        /* A length that grew may look like a torn tail; all else is seen to be damage. */
        if (why.code != TCTL_OK) {
            assert_int_equal(why.code, TCTL_EFORMAT);
            assert_non_null(strstr(why.message, "damaged at offset"));
        }
        assert_true(has(cache, 1));
        assert_false(has(cache, 2));
        if (i % 2 == 0) { /* also if nothing is new */
            put(cache, 2);
            put(cache, 3);
        }
        tctl_stat_cache_close(cache);
        assert_int_equal(count(4), i % 2 == 0 ? 3 : 1); /* no warning any more */
    }
}

static void a_file_that_is_no_cache_is_kept_aside(void **state)
{
    (void)state;
    fill(1, 2);
    static const char text[] = "dear diary, this is not a stat cache at all";
    assert_int_equal(tctl_file_replace(path, text, sizeof text, 0600, NULL), TCTL_OK);
    tctl_error why;
    tctl_stat_cache *cache = tctl_stat_cache_open(path, &why);
    assert_int_equal(why.code, TCTL_EFORMAT);
    assert_non_null(strstr(why.message, "is not a stat cache"));
    put(cache, 5);
    tctl_stat_cache_close(cache);
    assert_int_equal(count(10), 1);
    char aside[160];
    snprintf(aside, sizeof aside, "%s.damaged", path);
    tctl_buf buf = TCTL_BUF_INIT;
    assert_int_equal(tctl_file_read(aside, 1000, &buf, NULL), TCTL_OK);
    assert_memory_equal(buf.data, text, sizeof text);
    tctl_buf_release(&buf);
}

static void a_cache_that_cannot_be_written_works_in_memory(void **state)
{
    (void)state;
    tctl_error why;
    /* Below a file there is no folder, also for root. */
    fill(1, 2);
    char below[160];
    snprintf(below, sizeof below, "%s/x/stat-v1", path);
    tctl_stat_cache *cache = tctl_stat_cache_open(below, &why);
    assert_non_null(cache);
    assert_int_not_equal(why.code, TCTL_OK);
    assert_non_null(strstr(why.message, below));
    put(cache, 1);
    assert_true(has(cache, 1));
    assert_int_equal(tctl_stat_cache_flush(cache, &why), TCTL_OK);
    tctl_stat_cache_close(cache);

    /* A folder in its place. */
    snprintf(below, sizeof below, "%s/cache", folder);
    cache = tctl_stat_cache_open(below, &why);
    assert_int_not_equal(why.code, TCTL_OK);
    put(cache, 1);
    assert_true(has(cache, 1));
    tctl_stat_cache_close(cache);

    /* A FIFO does not make it wait. */
    snprintf(below, sizeof below, "%s/fifo", folder);
    assert_int_equal(mkfifo(below, 0600), 0);
    cache = tctl_stat_cache_open(below, &why);
    assert_non_null(strstr(why.message, "not a regular file"));
    tctl_stat_cache_close(cache);

    /* No cache at all. */
    struct stat st = old_stat(1);
    tctl_sha256 digest = digest_of(1);
    tctl_stat_cache_put(NULL, "/x", &st, &digest);
    assert_false(tctl_stat_cache_get(NULL, "/x", &st, &digest));
    assert_int_equal(tctl_stat_cache_flush(NULL, NULL), TCTL_OK);
    tctl_stat_cache_close(NULL);
}

static void a_read_only_cache_is_still_read(void **state)
{
    (void)state;
    bool root = geteuid() == 0; /* root may write everything: be somebody else for a while */
    if (root) {
        assert_int_equal(chown(folder, 65534, 65534), 0);
        assert_int_equal(seteuid(65534), 0);
    }
    fill(1, 3);
    assert_int_equal(chmod(path, 0400), 0);
    tctl_error why;
    tctl_stat_cache *cache = tctl_stat_cache_open(path, &why);
    assert_int_not_equal(why.code, TCTL_OK);
    assert_non_null(strstr(why.message, "cannot write stat cache"));
    assert_true(has(cache, 1));
    put(cache, 3);
    assert_true(has(cache, 3));
    tctl_stat_cache_close(cache);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(count(4), 2);
    if (root)
        assert_int_equal(seteuid(0), 0);
}

static void a_cache_held_by_another_process_is_skipped(void **state)
{
    (void)state;
    fill(1, 2);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    tctl_stat_cache *cache = open_clean();
    assert_true(has(cache, 1)); /* readers take no lock */
    put(cache, 2);
    tctl_error err = {0};
    assert_int_equal(tctl_stat_cache_flush(cache, &err), TCTL_EBUSY);
    assert_non_null(strstr(err.message, "held by another process"));
    close(fd);
    assert_int_equal(tctl_stat_cache_flush(cache, &err), TCTL_OK);
    tctl_stat_cache_close(cache);
    assert_int_equal(count(3), 2);
}

static void a_cache_that_is_mostly_stale_is_rewritten(void **state)
{
    (void)state;
    fill(1, 101);
    off_t small = file_size();
    for (int round = 0; round < 6; round++) {
        tctl_stat_cache *cache = open_clean();
        for (uint64_t n = 1; n <= 100; n++) {
            struct stat st = old_stat(n);
            st.st_mtim.tv_nsec += round + 1;
            tctl_sha256 digest = digest_of(n + (uint64_t)round);
            tctl_stat_cache_put_at(cache, name_of(n), &st, looked, &digest);
        }
        tctl_stat_cache_close(cache);
        assert_true(file_size() <= 3 * small);
    }
    tctl_stat_cache *cache = open_clean();
    struct stat st = old_stat(50);
    st.st_mtim.tv_nsec += 6;
    tctl_sha256 digest, expected = digest_of(55);
    assert_true(tctl_stat_cache_get(cache, name_of(50), &st, &digest));
    assert_true(tctl_sha256_equal(&digest, &expected));
    tctl_stat_cache_close(cache);
}

/* One process rewrites while another, which read the file before, appends: nothing is lost. */
static void a_file_replaced_meanwhile_is_appended_to(void **state)
{
    (void)state;
    fill(1, 101);
    tctl_stat_cache *late = open_clean();
    put(late, 500);
    for (int round = 0; round < 3; round++) {
        tctl_stat_cache *cache = open_clean();
        for (uint64_t n = 1; n <= 100; n++) {
            struct stat st = old_stat(n);
            st.st_ctim.tv_nsec += round + 1;
            tctl_sha256 digest = digest_of(n);
            tctl_stat_cache_put_at(cache, name_of(n), &st, looked, &digest);
        }
        tctl_stat_cache_close(cache);
    }
    fill(600, 601);
    tctl_stat_cache_close(late);
    tctl_stat_cache *cache = open_clean();
    assert_true(has(cache, 500));
    assert_true(has(cache, 600));
    tctl_stat_cache_close(cache);
}

enum { N_PROCESSES = 8, PER_PROCESS = 200 };

static void many_processes_write_at_once(void **state)
{
    (void)state;
    for (uint64_t p = 0; p < N_PROCESSES; p++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            for (uint64_t k = 0; k < PER_PROCESS; k += 20) {
                tctl_stat_cache *cache = tctl_stat_cache_open(path, NULL);
                for (uint64_t i = 0; i < 20; i++)
                    put(cache, p * PER_PROCESS + k + i);
                if (tctl_stat_cache_flush(cache, NULL) != TCTL_OK)
                    _exit(1);
                tctl_stat_cache_close(cache);
            }
            _exit(0);
        }
    }
    for (int p = 0; p < N_PROCESSES; p++) {
        int status = 0;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count(N_PROCESSES * PER_PROCESS), N_PROCESSES * PER_PROCESS);
}

static void the_default_path_follows_the_xdg_rules(void **state)
{
    (void)state;
    tctl_arena *arena = tctl_arena_create();
    setenv("XDG_CACHE_HOME", "/somewhere", 1);
    assert_string_equal(tctl_stat_cache_default_path(arena), "/somewhere/trainctl/stat-v1");
    setenv("XDG_CACHE_HOME", "relative", 1);
    setenv("HOME", "/somebody", 1);
    assert_string_equal(tctl_stat_cache_default_path(arena), "/somebody/.cache/trainctl/stat-v1");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    assert_null(tctl_stat_cache_default_path(arena));
    tctl_arena_destroy(arena);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(digests_are_remembered_across_processes),
        TEST(any_change_of_the_token_is_a_miss),
        TEST(a_file_changed_just_before_it_was_looked_at_is_not_remembered),
        TEST(a_torn_tail_is_ignored_and_mended),
        TEST(damage_gives_one_warning_and_is_mended),
        TEST(a_file_that_is_no_cache_is_kept_aside),
        TEST(a_cache_that_cannot_be_written_works_in_memory),
        TEST(a_read_only_cache_is_still_read),
        TEST(a_cache_held_by_another_process_is_skipped),
        TEST(a_cache_that_is_mostly_stale_is_rewritten),
        TEST(a_file_replaced_meanwhile_is_appended_to),
        TEST(many_processes_write_at_once),
        TEST(the_default_path_follows_the_xdg_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
