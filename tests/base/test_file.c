/* SPDX-License-Identifier: Apache-2.0 */
/* Files: whole reads, replacement that is never half, folders made and removed, and every refusal by name. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

static char folder[64];
static tctl_arena *arena;

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/tctl-file-XXXXXX");
    arena = tctl_arena_create();
    return mkdtemp(folder) && arena ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    tctl_arena_destroy(arena);
    return tctl_remove_tree(folder, NULL);
}

static const char *at(const char *name)
{
    return tctl_path_join(arena, folder, name);
}

static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    assert_non_null(dir);
    int n = 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2;
}

static void assert_content(const char *path, const char *expected)
{
    tctl_buf buf = TCTL_BUF_INIT;
    assert_int_equal(tctl_file_read(path, 1 << 20, &buf, NULL), TCTL_OK);
    assert_string_equal(tctl_buf_text(&buf), expected);
    tctl_buf_release(&buf);
}

static void a_file_is_read_whole_and_appended(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 16383, 16384, 16385, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *data = malloc(sizes[i] + 1);
        memset(data, 'd', sizes[i]);
        assert_int_equal(tctl_file_replace(at("f"), data, sizes[i], 0600, NULL), TCTL_OK);
        tctl_buf buf = TCTL_BUF_INIT;
        tctl_buf_add_text(&buf, "before:");
        assert_int_equal(tctl_file_read(at("f"), sizes[i], &buf, NULL), TCTL_OK);
        assert_int_equal(buf.size, sizes[i] + 7);
        assert_memory_equal(buf.data + 7, data, sizes[i]);
        free(data);
        tctl_buf_release(&buf);
    }
}

static void what_cannot_be_read_is_refused_and_nothing_appended(void **state)
{
    (void)state;
    tctl_buf buf = TCTL_BUF_INIT;
    tctl_error err = {0};
    tctl_buf_add_text(&buf, "kept");
    assert_int_equal(tctl_file_read(at("none"), 10, &buf, &err), TCTL_ENOENT);
    assert_non_null(strstr(err.message, "none': No such file or directory"));
    assert_int_equal(tctl_file_read(folder, 10, &buf, &err), TCTL_EINVAL);
    assert_non_null(strstr(err.message, "not a regular file"));
    assert_int_equal(mkfifo(at("fifo"), 0600), 0);
    assert_int_equal(tctl_file_read(at("fifo"), 10, &buf, &err), TCTL_EINVAL); /* and does not wait */
    char large[40000];
    memset(large, 'x', sizeof large);
    assert_int_equal(tctl_file_replace(at("large"), large, sizeof large, 0600, NULL), TCTL_OK);
    assert_int_equal(tctl_file_read(at("large"), sizeof large - 1, &buf, &err), TCTL_EINVAL);
    assert_non_null(strstr(err.message, "large' is larger than 39999 bytes"));
    assert_string_equal(tctl_buf_text(&buf), "kept");
    buf.limit = 100;
    assert_int_equal(tctl_file_read(at("large"), sizeof large, &buf, &err), TCTL_ENOMEM);
    tctl_buf_release(&buf);
}

static void replacing_sets_content_and_mode(void **state)
{
    (void)state;
    mode_t old = umask(022);
    struct stat st;
    assert_int_equal(tctl_file_replace(at("f"), "one", 3, 0666, NULL), TCTL_OK);
    assert_content(at("f"), "one");
    assert_int_equal(stat(at("f"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0644); /* the umask counts, as with open(2) */
    assert_int_equal(tctl_file_replace(at("f"), "twotwo", 6, 0600, NULL), TCTL_OK);
    assert_content(at("f"), "twotwo");
    assert_int_equal(stat(at("f"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(count_entries(folder), 1); /* no temporary left */
    umask(old);
}

static void what_was_put_can_be_synced_later(void **state)
{
    (void)state;
    assert_int_equal(tctl_file_put(at("f"), "old", 3, 0644, NULL), TCTL_OK);
    assert_int_equal(tctl_file_put(at("f"), "new", 3, 0644, NULL), TCTL_OK);
    assert_content(at("f"), "new");
    assert_int_equal(count_entries(folder), 1);
    assert_int_equal(tctl_file_sync(at("f"), NULL), TCTL_OK);
    tctl_error err = {0};
    assert_int_equal(tctl_file_sync(at("none"), &err), TCTL_ENOENT);
    assert_non_null(strstr(err.message, "none"));
}

static void a_link_is_replaced_not_followed(void **state)
{
    (void)state;
    assert_int_equal(tctl_file_replace(at("target"), "t", 1, 0600, NULL), TCTL_OK);
    assert_int_equal(symlink("target", at("link")), 0);
    assert_int_equal(tctl_file_replace(at("link"), "new", 3, 0600, NULL), TCTL_OK);
    assert_content(at("target"), "t");
    assert_content(at("link"), "new");
}

static void a_failed_replacement_leaves_the_old_file(void **state)
{
    (void)state;
    tctl_error err = {0};
    assert_int_equal(tctl_file_replace(at("f"), "old", 3, 0600, NULL), TCTL_OK);
    assert_int_equal(tctl_file_replace(at("none/f"), "x", 1, 0600, &err), TCTL_ENOENT);
    assert_non_null(strstr(err.message, "none/f"));
    assert_int_equal(tctl_make_folders(at("d/sub"), 0700, NULL), TCTL_OK);
    assert_int_equal(tctl_file_replace(at("d"), "x", 1, 0600, &err), TCTL_EIO); /* a folder is in its place */
    assert_non_null(strstr(err.message, "cannot replace"));
    /* A disk that is full, as far as this process is concerned. */
    struct rlimit limit, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    char large[5000] = "";
    tctl_status status = tctl_file_replace(at("f"), large, sizeof large, 0600, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(status, TCTL_EIO);
    assert_non_null(strstr(err.message, "File too large"));
    assert_content(at("f"), "old");
    assert_int_equal(count_entries(folder), 2);
}

/* A reader sees the old text or the new one, never a mixture or nothing. */
static void readers_never_see_a_half_written_file(void **state)
{
    (void)state;
    enum { SIZE = 20000, ROUNDS = 40 };
    char text[SIZE];
    memset(text, 'a', SIZE);
    assert_int_equal(tctl_file_replace(at("f"), text, SIZE, 0600, NULL), TCTL_OK);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        for (int i = 0; i < ROUNDS; i++) {
            memset(text, 'a' + i % 26, SIZE);
            if (tctl_file_replace(at("f"), text, SIZE, 0600, NULL) != TCTL_OK)
                _exit(1);
        }
        _exit(0);
    }
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        tctl_buf buf = TCTL_BUF_INIT;
        assert_int_equal(tctl_file_read(at("f"), SIZE, &buf, NULL), TCTL_OK);
        assert_int_equal(buf.size, SIZE);
        for (size_t i = 1; i < SIZE; i++)
            assert_int_equal(buf.data[i], buf.data[0]);
        tctl_buf_release(&buf);
    }
    assert_int_equal(status, 0);
}

static void a_full_device_is_told_as_such(void **state)
{
    (void)state;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        skip();
    tctl_error err = {0};
    assert_int_equal(tctl_write_all(fd, "x", 1, "/dev/full", &err), TCTL_ENOSPC);
    assert_string_equal(err.message, "cannot write '/dev/full': No space left on device");
    close(fd);
    assert_int_equal(tctl_write_all(fd, "", 0, "x", &err), TCTL_OK); /* nothing to write */
}

/* A pipe takes 64 kB at a time: write(2) stops short and is called again. */
static void short_writes_are_continued(void **state)
{
    (void)state;
    enum { SIZE = 1000000 };
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        char *data = calloc(1, SIZE);
        _exit(data && tctl_write_all(ends[1], data, SIZE, "pipe", NULL) == TCTL_OK ? 0 : 1);
    }
    close(ends[1]);
    char chunk[1000];
    size_t total = 0;
    for (ssize_t n; (n = read(ends[0], chunk, sizeof chunk)) > 0;)
        total += (size_t)n;
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(total, SIZE);
}

static void folders_are_made_with_their_parents(void **state)
{
    (void)state;
    struct stat st;
    assert_int_equal(tctl_make_folders(at("a/b/c"), 0700, NULL), TCTL_OK);
    assert_int_equal(stat(at("a/b/c"), &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(tctl_make_folders(at("a/b/c"), 0700, NULL), TCTL_OK); /* again is fine */
    assert_int_equal(tctl_make_folders(at("a//b/d/"), 0700, NULL), TCTL_OK);
    assert_int_equal(stat(at("a/b/d"), &st), 0);
    assert_int_equal(tctl_make_folders("/", 0700, NULL), TCTL_OK);
    assert_int_equal(symlink("a", at("link")), 0);
    assert_int_equal(tctl_make_folders(at("link/e"), 0700, NULL), TCTL_OK);
    assert_int_equal(stat(at("a/e"), &st), 0);

    tctl_error err = {0};
    assert_int_equal(tctl_make_folders("", 0700, &err), TCTL_EINVAL);
    assert_int_equal(tctl_file_replace(at("file"), "", 0, 0600, NULL), TCTL_OK);
    assert_int_equal(tctl_make_folders(at("file"), 0700, &err), TCTL_EIO);
    assert_non_null(strstr(err.message, "something else has that name"));
    assert_int_equal(tctl_make_folders(at("file/x"), 0700, &err), TCTL_ENOENT);
    assert_non_null(strstr(err.message, "Not a directory"));
}

static void trees_are_removed_without_following_links(void **state)
{
    (void)state;
    assert_int_equal(tctl_make_folders(at("keep"), 0700, NULL), TCTL_OK);
    assert_int_equal(tctl_file_replace(at("keep/f"), "x", 1, 0600, NULL), TCTL_OK);
    assert_int_equal(tctl_make_folders(at("t/a/b"), 0700, NULL), TCTL_OK);
    assert_int_equal(tctl_file_replace(at("t/a/f"), "x", 1, 0600, NULL), TCTL_OK);
    assert_int_equal(mkfifo(at("t/fifo"), 0600), 0);
    assert_int_equal(symlink("../keep", at("t/link")), 0);
    assert_int_equal(symlink("nowhere", at("t/a/dangling")), 0);
    assert_int_equal(tctl_remove_tree(at("t"), NULL), TCTL_OK);
    assert_false(tctl_path_exists(at("t")));
    assert_content(at("keep/f"), "x");
    assert_int_equal(tctl_remove_tree(at("t"), NULL), TCTL_OK); /* missing is fine */
    assert_int_equal(symlink("keep", at("link")), 0);
    assert_int_equal(tctl_remove_tree(at("link"), NULL), TCTL_OK); /* a link itself, not its target */
    assert_content(at("keep/f"), "x");
    assert_int_equal(tctl_remove_tree(at("keep/f"), NULL), TCTL_OK); /* a file */
    assert_int_equal(count_entries(at("keep")), 0);
}

/* Deeper than a process has descriptors, and than a path may be long. */
static void a_very_deep_tree_is_removed(void **state)
{
    (void)state;
    enum { DEPTH = 3000 };
    struct rlimit old, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = old;
    few.rlim_cur = 64;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(mkdirat(fd, "d", 0700), 0);
        int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(fd);
        fd = next;
        if (i % 100 == 0)
            close(openat(fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
    close(fd);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    tctl_error err = {0};
    tctl_status status = tctl_remove_tree(at("d"), &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    if (status != TCTL_OK)
        fail_msg("%s", err.message);
    assert_int_equal(count_entries(folder), 0);
}

static void what_cannot_be_removed_is_named(void **state)
{
    (void)state;
    bool root = geteuid() == 0; /* root may remove everything: be somebody else for a while */
    if (root) {
        assert_int_equal(chown(folder, 65534, 65534), 0);
        assert_int_equal(seteuid(65534), 0);
    }
    assert_int_equal(tctl_make_folders(at("t/locked"), 0700, NULL), TCTL_OK);
    assert_int_equal(tctl_file_replace(at("t/locked/f"), "x", 1, 0600, NULL), TCTL_OK);
    assert_int_equal(chmod(at("t/locked"), 0500), 0);
    tctl_error err = {0};
    assert_int_equal(tctl_remove_tree(at("t"), &err), TCTL_EIO);
    assert_non_null(strstr(err.message, "cannot remove 'f' in '"));
    assert_non_null(strstr(err.message, "Permission denied"));
    assert_int_equal(chmod(at("t/locked"), 0700), 0);
    if (root)
        assert_int_equal(seteuid(0), 0);
}

static void paths_are_joined_and_split(void **state)
{
    (void)state;
    static const struct {
        const char *folder, *name, *path;
    } joins[] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"},
        {"", "b", "b"},    {"a", "/b", "/b"},  {"a", "", "a/"},
    };
    for (size_t i = 0; i < sizeof joins / sizeof joins[0]; i++)
        assert_string_equal(tctl_path_join(arena, joins[i].folder, joins[i].name), joins[i].path);
    static const struct {
        const char *path, *folder, *base;
    } splits[] = {
        {"a/b", "a", "b"},     {"b", ".", "b"}, {"/b", "/", "b"},
        {"a/b/c", "a/b", "c"}, {"a/", "a", ""}, {"", ".", ""},
    };
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        assert_string_equal(tctl_path_folder(arena, splits[i].path), splits[i].folder);
        assert_string_equal(tctl_path_base(splits[i].path), splits[i].base);
    }
    assert_true(tctl_path_exists(folder));
    assert_false(tctl_path_exists(at("none")));
    assert_int_equal(symlink("nowhere", at("dangling")), 0);
    assert_true(tctl_path_exists(at("dangling"))); /* the name exists */
}

static void folders_are_synced_by_the_name_in_them(void **state)
{
    (void)state;
    assert_int_equal(tctl_fsync_parent(at("whatever"), NULL), TCTL_OK);
    assert_int_equal(tctl_fsync_parent("no-slash", NULL), TCTL_OK);
    assert_int_equal(tctl_fsync_parent("/top", NULL), TCTL_OK);
    tctl_error err = {0};
    assert_int_equal(tctl_fsync_parent(at("none/f"), &err), TCTL_ENOENT);
    assert_non_null(strstr(err.message, "cannot sync folder"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_read_whole_and_appended),
        TEST(what_cannot_be_read_is_refused_and_nothing_appended),
        TEST(replacing_sets_content_and_mode),
        TEST(what_was_put_can_be_synced_later),
        TEST(a_link_is_replaced_not_followed),
        TEST(a_failed_replacement_leaves_the_old_file),
        TEST(readers_never_see_a_half_written_file),
        TEST(a_full_device_is_told_as_such),
        TEST(short_writes_are_continued),
        TEST(folders_are_made_with_their_parents),
        TEST(trees_are_removed_without_following_links),
        TEST(a_very_deep_tree_is_removed),
        TEST(what_cannot_be_removed_is_named),
        TEST(paths_are_joined_and_split),
        TEST(folders_are_synced_by_the_name_in_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
