/* SPDX-License-Identifier: Apache-2.0 */
/* Trees: the documented bytes, the same digest however it is computed, and what can't be hashed is named. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "manifest/tree.h"

static char folder[64];
static tctl_arena *arena;

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/tctl-tree-XXXXXX");
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

static void make_file(const char *name, const char *text)
{
    const char *path = at(name);
    assert_int_equal(tctl_make_folders(tctl_path_folder(arena, path), 0755, NULL), TCTL_OK);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644); /* no fsync: there are thousands */
    assert_true(fd >= 0);
    assert_int_equal(tctl_write_all(fd, text, strlen(text), path, NULL), TCTL_OK);
    close(fd);
}

static tctl_tree hash_with(const char *path, const tctl_tree_request *request)
{
    tctl_tree tree = {0};
    tctl_error err = {0};
    if (tctl_tree_hash(path, request, arena, &tree, &err) != TCTL_OK)
        fail_msg("%s", err.message);
    return tree;
}

static tctl_tree hash(const char *path)
{
    const tctl_tree_request request = {NULL, NULL, NULL, NULL};
    return hash_with(path, &request);
}

/* The digest as tree.h defines it, from lines "type name content" in the order given. */
typedef struct line {
    char type;
    const char *name, *content;
} line;

static tctl_sha256 expected_digest(const line *lines, size_t n)
{
    tctl_buf buf = TCTL_BUF_INIT;
    tctl_buf_add(&buf, "trainctl-tree 1", 16);
    for (size_t i = 0; i < n; i++) {
        char hex[TCTL_SHA256_HEX] = "-";
        size_t size = lines[i].content ? strlen(lines[i].content) : 0;
        if (lines[i].content) {
            tctl_sha256 digest = tctl_sha256_of(lines[i].content, size);
            tctl_sha256_hex(&digest, hex);
        }
        tctl_buf_add_format(&buf, "%c %zu %s %s", lines[i].type, size, hex, lines[i].name);
        tctl_buf_add_char(&buf, '\0');
    }
    tctl_sha256 digest = tctl_sha256_of(buf.data, buf.size);
    tctl_buf_release(&buf);
    return digest;
}

/* Everything a tree may hold; the order is that of the paths' bytes, which is not that of the names: '-' and '.' come
 * before '/', '0' after it. */
static const line everything[] = {
    {'f', "a", "one"},
    {'f', "b-c", "two"},
    {'f', "b.txt", ""},
    {'f', "b/deep/er/file", "three"},
    {'d', "b/empty", NULL},
    {'l', "b/link", "nowhere/at/all"},
    {'f', "b/z", "four"},
    {'f', "b0", "five"},
    {'d', "e", NULL},
    {'f', "e.x", "six"},
    {'f', "na\nme \\ \"x\"", "seven"},
    {'x', "run.sh", "#!/bin/sh\n"},
    {'l', "to-folder", "b"},
    {'f', "\xff\xfe not utf-8", "eight"},
};

enum { N_EVERYTHING = sizeof everything / sizeof everything[0] };

static void make_everything(void)
{
    for (size_t i = 0; i < N_EVERYTHING; i++) {
        const line *l = &everything[i];
        if (l->type == 'd')
            assert_int_equal(tctl_make_folders(at(l->name), 0755, NULL), TCTL_OK);
        else if (l->type == 'l')
            assert_int_equal(symlink(l->content, at(l->name)), 0);
        else
            make_file(l->name, l->content);
        if (l->type == 'x')
            assert_int_equal(chmod(at(l->name), 0700), 0);
    }
}

static void a_tree_has_the_documented_digest(void **state)
{
    (void)state;
    make_everything();
    tctl_tree tree = hash(folder);
    assert_true(tree.is_folder);
    assert_int_equal(tree.n_entries, N_EVERYTHING);
    assert_int_equal(tree.n_files, 10);
    for (size_t i = 0; i < N_EVERYTHING; i++) {
        assert_string_equal(tree.entries[i].path, everything[i].name);
        assert_int_equal(tree.entries[i].type, everything[i].type);
    }
    tctl_sha256 expected = expected_digest(everything, N_EVERYTHING);
    assert_true(tctl_sha256_equal(&tree.digest, &expected));
    assert_int_equal(tree.n_bytes, 3 + 3 + 5 + 4 + 4 + 3 + 5 + 10 + 5);
}

static void an_empty_folder_is_a_tree_without_lines(void **state)
{
    (void)state;
    tctl_tree tree = hash(folder);
    tctl_sha256 expected = tctl_sha256_of("trainctl-tree 1", 16);
    assert_true(tctl_sha256_equal(&tree.digest, &expected));
    assert_int_equal(tree.n_entries, 0);
}

/* Enough entries for several batches in one folder, and folders in folders. */
static void make_many(void)
{
    char name[64];
    for (int i = 0; i < 1200; i++) {
        snprintf(name, sizeof name, i < 1100 ? "flat/%d" : "d%d/e%d/f", i, i % 7);
        make_file(name, name);
    }
    char *large = malloc(3 << 20);
    memset(large, 'x', 3 << 20);
    assert_int_equal(tctl_file_replace(at("large"), large, 3 << 20, 0644, NULL), TCTL_OK);
    free(large);
}

static void threads_and_cache_do_not_show(void **state)
{
    (void)state;
    make_many();
    tctl_tree first = hash(folder);
    assert_int_equal(first.n_files, 1201);
    static const uint32_t threads[] = {1, 2, 3, 5};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        tctl_pool *pool = NULL;
        assert_int_equal(tctl_pool_create(threads[i], &pool, NULL), TCTL_OK);
        tctl_stat_cache *cache = tctl_stat_cache_open(NULL, NULL);
        const tctl_tree_request request = {pool, cache, NULL, NULL};
        for (int round = 0; round < 3; round++) {
            tctl_tree tree = hash_with(folder, &request);
            assert_true(tctl_sha256_equal(&tree.digest, &first.digest));
            if (round == 0)
                usleep(50 * 1000); /* now the files are old enough to be remembered */
        }
        tctl_stat_cache_close(cache);
        tctl_pool_destroy(pool);
    }
}

typedef struct counts {
    uint64_t seen, cached, hashed, bytes, total;
    int calls;
} counts;

static void take_counts(void *impl, uint64_t seen, uint64_t cached, uint64_t hashed, uint64_t bytes,
                        uint64_t total)
{
    counts *c = impl;
    *c = (counts){seen, cached, hashed, bytes, total, c->calls + 1};
}

/* AC1: the second hash of a tree with one change reads only that file. */
static void only_what_changed_is_read_again(void **state)
{
    (void)state;
    char name[32];
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "d%d/%d", i % 10, i);
        make_file(name, name);
    }
    make_file("single", "hello");
    usleep(50 * 1000);
    tctl_stat_cache *cache = tctl_stat_cache_open(NULL, NULL);
    counts c = {0};
    const tctl_tree_progress progress = {&c, take_counts};
    const tctl_tree_request request = {NULL, cache, &progress, NULL};
    tctl_tree first = hash_with(folder, &request);
    assert_int_equal(c.seen, 301);
    assert_int_equal(c.cached, 0);
    assert_int_equal(c.hashed, 301);
    assert_int_equal(c.bytes, c.total);
    assert_int_equal(c.total, first.n_bytes);
    make_file("d3/3", "changed now");
    tctl_tree second = hash_with(folder, &request);
    assert_int_equal(c.cached, 300);
    assert_int_equal(c.hashed, 1);
    assert_int_equal(c.bytes, 11);
    assert_false(tctl_sha256_equal(&first.digest, &second.digest));
    /* A single file goes through the same cache. */
    tctl_tree file = hash_with(at("single"), &request);
    assert_int_equal(c.cached, 1);
    tctl_sha256 expected = tctl_sha256_of("hello", 5);
    assert_true(tctl_sha256_equal(&file.digest, &expected));
    tctl_stat_cache_close(cache);
}

/* The same size, and the old mtime put back: ctime tells. */
static void a_change_that_hides_its_mtime_is_seen(void **state)
{
    (void)state;
    make_file("f", "before");
    usleep(50 * 1000);
    tctl_stat_cache *cache = tctl_stat_cache_open(NULL, NULL);
    const tctl_tree_request request = {NULL, cache, NULL, NULL};
    tctl_tree first = hash_with(folder, &request);
    struct stat st;
    assert_int_equal(stat(at("f"), &st), 0);
    int fd = open(at("f"), O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(fd, "after!", 6), 6);
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
    tctl_tree second = hash_with(folder, &request);
    assert_false(tctl_sha256_equal(&first.digest, &second.digest));
    tctl_stat_cache_close(cache);
}

static void a_single_file_has_its_plain_digest(void **state)
{
    (void)state;
    make_file("f", "abc");
    assert_int_equal(symlink("f", at("link")), 0);
    static const char *const names[] = {"f", "link"}; /* a link that is named itself is followed */
    for (size_t i = 0; i < 2; i++) {
        tctl_tree tree = hash(at(names[i]));
        tctl_sha256 expected = tctl_sha256_of("abc", 3);
        assert_false(tree.is_folder);
        assert_true(tctl_sha256_equal(&tree.digest, &expected));
        assert_int_equal(tree.n_files, 1);
        assert_int_equal(tree.n_bytes, 3);
        assert_int_equal(tree.n_entries, 1);
        assert_string_equal(tree.entries[0].path, "");
        assert_int_equal(tree.entries[0].type, 'f');
    }
}

static void excluded_paths_are_left_out(void **state)
{
    (void)state;
    make_file("keep", "1");
    make_file("drop", "2");
    make_file("sub/keep", "3");
    make_file("sub/drop/x", "4");
    make_file("only/one", "5");
    assert_int_equal(mkfifo(at("sub/fifo"), 0600), 0);
    static const char *const exclude[] = {"drop", "sub/drop", "sub/fifo", "only/one", NULL};
    const tctl_tree_request request = {NULL, NULL, NULL, exclude};
    tctl_tree tree = hash_with(folder, &request);
    static const line left[] = {{'f', "keep", "1"}, {'d', "only", NULL}, {'f', "sub/keep", "3"}};
    tctl_sha256 expected = expected_digest(left, 3);
    assert_true(tctl_sha256_equal(&tree.digest, &expected));
}

static void assert_refused(const char *path, tctl_status code, const char *message)
{
    const tctl_tree_request request = {NULL, NULL, NULL, NULL};
    tctl_tree tree;
    tctl_error err = {0};
    assert_int_equal(tctl_tree_hash(path, &request, arena, &tree, &err), code);
    if (!strstr(err.message, message))
        fail_msg("'%s' lacks '%s'", err.message, message);
}

static void special_files_are_refused_by_name(void **state)
{
    (void)state;
    make_file("a/ok", "fine");
    assert_int_equal(mkfifo(at("a/pipe"), 0600), 0);
    assert_refused(folder, TCTL_EINVAL, "/a/pipe' is a FIFO");
    assert_refused(at("a/pipe"), TCTL_EINVAL, "neither a file nor a folder");
    assert_int_equal(unlink(at("a/pipe")), 0);

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/a/sock", folder);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_refused(folder, TCTL_EINVAL, "/a/sock' is a socket");
    close(fd);
}

/* Whatever the threads do, the first path in byte order is the one that is told. */
static void of_several_errors_the_first_path_is_told(void **state)
{
    (void)state;
    static const char *const names[] = {"m/x/p", "b/y/p", "z/p", "b-/p", "q/p"};
    for (size_t i = 0; i < 5; i++) {
        make_file(tctl_arena_format(arena, "%s.txt", names[i]), "");
        assert_int_equal(mkfifo(at(names[i]), 0600), 0);
    }
    for (uint32_t threads = 1; threads <= 5; threads += 2) {
        tctl_pool *pool = NULL;
        assert_int_equal(tctl_pool_create(threads, &pool, NULL), TCTL_OK);
        const tctl_tree_request request = {pool, NULL, NULL, NULL};
        tctl_tree tree;
        tctl_error err = {0};
        assert_int_equal(tctl_tree_hash(folder, &request, arena, &tree, &err), TCTL_EINVAL);
        assert_non_null(strstr(err.message, "/b-/p' is a FIFO"));
        assert_string_equal(err.notes[0], "and 4 more of its entries can't be hashed");
        tctl_pool_destroy(pool);
    }
}

static void missing_roots_and_dangling_links_are_named(void **state)
{
    (void)state;
    assert_refused(at("none"), TCTL_ENOENT, "/none': No such file or directory");
    assert_int_equal(symlink("gone", at("link")), 0);
    assert_refused(at("link"), TCTL_ENOENT, "/link': it is a link to 'gone', which does not exist");
    assert_refused("", TCTL_ENOENT, "cannot hash ''");
}

static void unreadable_entries_are_named_with_the_reason(void **state)
{
    (void)state;
    bool root = geteuid() == 0; /* root may read everything: be somebody else for a while */
    if (root) {
        assert_int_equal(chown(folder, 65534, 65534), 0);
        assert_int_equal(seteuid(65534), 0);
    }
    make_file("a/locked", "x");
    assert_int_equal(chmod(at("a/locked"), 0), 0);
    assert_refused(folder, TCTL_EIO, "/a/locked': Permission denied");
    assert_int_equal(chmod(at("a/locked"), 0600), 0);
    assert_int_equal(chmod(at("a"), 0), 0);
    assert_refused(folder, TCTL_EIO, "/a': Permission denied");
    assert_int_equal(chmod(at("a"), 0700), 0);
    if (root)
        assert_int_equal(seteuid(0), 0);
}

/* Appends to a file as soon as the walk is over: the progress call comes from within the hashing. */
static void spoil(void *impl, uint64_t seen, uint64_t cached, uint64_t hashed, uint64_t bytes, uint64_t total)
{
    (void)seen, (void)cached, (void)hashed, (void)total;
    if (bytes == 0)
        return;
    int fd = open(impl, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, "!", 1), 1);
    close(fd);
}

static void a_file_that_changes_while_it_is_hashed_is_named(void **state)
{
    (void)state;
    /* Sparse, and large enough for progress to be told while it is read. */
    make_file("growing", "");
    assert_int_equal(truncate(at("growing"), (off_t)300 << 20), 0);
    char *path = tctl_arena_copy(arena, at("growing"), strlen(at("growing")));
    const tctl_tree_progress progress = {path, spoil};
    tctl_stat_cache *cache = tctl_stat_cache_open(NULL, NULL);
    const tctl_tree_request request = {NULL, cache, &progress, NULL};
    tctl_tree tree;
    tctl_error err = {0};
    assert_int_equal(tctl_tree_hash(folder, &request, arena, &tree, &err), TCTL_ECHANGED);
    assert_non_null(strstr(err.message, "/growing' changed while it was hashed"));
    err = (tctl_error){0};
    assert_int_equal(tctl_tree_hash(path, &request, arena, &tree, &err), TCTL_ECHANGED);
    assert_non_null(strstr(err.message, path));
    tctl_stat_cache_close(cache);
}

static tctl_tree tree_of(tctl_tree_entry *entries, uint64_t n)
{
    return (tctl_tree){.is_folder = true, .n_entries = n, .entries = entries};
}

static void differences_are_named(void **state)
{
    (void)state;
    tctl_sha256 one = tctl_sha256_of("1", 1), two = tctl_sha256_of("2", 1);
    tctl_tree_entry was[] = {
        {"a", 'f', 1, one}, {"b\xff", 'f', 1, one}, {"c", 'f', 1, one}, {"same", 'd', 0, {{0}}}};
    tctl_tree_entry is[] = {
        {"a", 'f', 1, two}, {"c", 'x', 1, one}, {"d", 'l', 1, one}, {"same", 'd', 0, {{0}}}};
    tctl_tree before = tree_of(was, 4), after = tree_of(is, 4);
    tctl_buf out = TCTL_BUF_INIT;
    tctl_tree_explain(&before, &after, 10, &out);
    assert_string_equal(tctl_buf_text(&out), "changed: a (same size, other bytes)\nmissing: b\\xff\n"
                                             "changed: c (was a file, is an executable file)\nnew: d");
    tctl_buf_clear(&out);
    tctl_tree_explain(&before, &after, 2, &out);
    assert_string_equal(tctl_buf_text(&out),
                        "changed: a (same size, other bytes)\nmissing: b\\xff\nand 2 more");
    tctl_buf_clear(&out);
    tctl_tree_explain(&before, &before, 2, &out);
    assert_string_equal(tctl_buf_text(&out), "");
    after.is_folder = false;
    tctl_tree_explain(&before, &after, 2, &out);
    assert_string_equal(tctl_buf_text(&out), "changed: was a folder, is a file");
    tctl_buf_clear(&out);
    tctl_tree_entry file_was[] = {{"", 'f', 3, one}}, file_is[] = {{"", 'f', 4, two}};
    before = tree_of(file_was, 1);
    after = tree_of(file_is, 1);
    tctl_tree_explain(&before, &after, 2, &out);
    assert_string_equal(tctl_buf_text(&out), "changed: the file (was 3 bytes, is 4)");
    tctl_buf_release(&out);
}

/* A path that open(2) still takes, hundreds of folders deep; nothing recurses over file descriptors. */
static void deep_trees_are_hashed(void **state)
{
    (void)state;
    tctl_buf name = TCTL_BUF_INIT;
    for (int i = 0; i < 300; i++)
        tctl_buf_add_text(&name, "d/");
    tctl_buf_add_text(&name, "f");
    make_file(tctl_buf_text(&name), "deep");
    tctl_tree tree = hash(folder);
    const line only = {'f', tctl_buf_text(&name), "deep"};
    tctl_sha256 expected = expected_digest(&only, 1);
    assert_true(tctl_sha256_equal(&tree.digest, &expected));
    tctl_buf_release(&name);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_tree_has_the_documented_digest),
        TEST(an_empty_folder_is_a_tree_without_lines),
        TEST(threads_and_cache_do_not_show),
        TEST(only_what_changed_is_read_again),
        TEST(a_change_that_hides_its_mtime_is_seen),
        TEST(a_single_file_has_its_plain_digest),
        TEST(excluded_paths_are_left_out),
        TEST(special_files_are_refused_by_name),
        TEST(of_several_errors_the_first_path_is_told),
        TEST(missing_roots_and_dangling_links_are_named),
        TEST(unreadable_entries_are_named_with_the_reason),
        TEST(a_file_that_changes_while_it_is_hashed_is_named),
        TEST(differences_are_named),
        TEST(deep_trees_are_hashed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
