/* SPDX-License-Identifier: Apache-2.0 */
/* Restoring code: what was changed, is gone, or was made up is refused, and nothing is written outside the folder. */
#include "code_fixture.h"

#include "manifest/digest.h"
#include "manifest/listing.h"
#include "manifest/objects.h"

/* Path of the object with this digest, within the project's parent folder. */
static void object_path(const fixture *f, const char *hex, char *ret, size_t room)
{
    snprintf(ret, room, "%s/objects/%.2s/%s", f->store, hex, hex + 2);
}

static void a_changed_object_is_named(void **state)
{
    fixture *f = *state;
    sh(f, "echo one >a.py && echo two >b.py && ln -s a.py l");
    json_t *code = capture(f);
    char path[256], command[600], hex[TCTL_SHA256_HEX];
    tctl_sha256 digest = tctl_sha256_of("two\n", 4);
    tctl_sha256_hex(&digest, hex);
    object_path(f, hex, path, sizeof path);
    snprintf(command, sizeof command, "chmod u+w %s && printf 'tvo\\n' >%s", path, path);
    sh(f, command);
    assert_int_equal(restore(f, code), TCTL_ECHANGED);
    assert_string_equal(f->err.message, "what was kept of 'b.py' has changed: its digest is another");
    snprintf(command, sizeof command, "rm -f %s", path);
    sh(f, command);
    assert_int_equal(restore(f, code), TCTL_ENOENT);
    assert_string_equal(f->err.notes[0], "it holds 'b.py'");
    json_decref(capture(f)); /* the next run puts it back */
    assert_same_tree(f, code);
    object_path(f, kept(code, "objects"), path, sizeof path);
    snprintf(command, sizeof command, "chmod u+w %s && printf x >>%s", path, path);
    sh(f, command);
    assert_int_equal(restore(f, code), TCTL_ECHANGED);
    assert_string_equal(f->err.message, "what was kept of 'the listing' has changed: its digest is another");
    json_decref(code);
}

static void objects_are_shared_and_read_only(void **state)
{
    fixture *f = *state;
    sh(f, "echo same >a.py && echo same >b.py");
    json_t *one = capture(f), *two = capture(f);
    assert_string_equal(kept(one, "objects"), kept(two, "objects"));
    sh(f, "test $(find ../store/objects -type f | wc -l) = 2 && test -z \"$(find ../store/objects -type f "
          "-perm /222)\"");
    sh(f, "test -z \"$(find ../store -name '*.tmp*')\"");
    json_decref(one);
    json_decref(two);
}

static void an_object_cut_short_is_written_again(void **state)
{
    fixture *f = *state;
    sh(f, "echo content >a.py");
    json_t *code = capture(f);
    sh(f, "find ../store/objects -type f -exec sh -c 'chmod u+w \"$1\"; : >\"$1\"' - {} \\;");
    json_decref(capture(f));
    assert_same_tree(f, code);
    json_decref(code);
}

static void a_folder_with_something_in_it_is_refused(void **state)
{
    fixture *f = *state;
    make_project(f);
    json_t *code = capture(f);
    assert_int_equal(tctl_code_restore(code, f->store, f->repo, &f->err), TCTL_EINVAL);
    assert_non_null(strstr(f->err.message, "it is not empty"));
    json_decref(code);
}

static void a_commit_that_is_gone_is_an_error(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "echo 2 >>a.py");
    json_t *code = capture(f);
    sh(f, "git gc -q --prune=now");
    assert_same_tree(f, code); /* the reference holds it */
    sh(f, "git update-ref -d refs/trainctl/exp-1 && git gc -q --prune=now");
    assert_int_equal(restore(f, code), TCTL_ENOENT);
    assert_non_null(strstr(f->err.message, "no repository with the kept commit "));
    json_decref(code);
}

static void a_repository_that_moved_is_found_above_the_store(void **state)
{
    fixture *f = *state;
    make_project(f);
    snprintf(f->store, sizeof f->store, "%s/.trainctl", f->repo);
    sh(f, "echo 2 >>a.py && mkdir .trainctl && echo '*' >.trainctl/.gitignore");
    json_t *code = capture(f);
    sh(f, "mkdir ../moved && mv .git ../moved/ && mkdir ../moved/.trainctl");
    snprintf(f->store, sizeof f->store, "%s/moved/.trainctl", f->base);
    assert_restored(f, code);
    sh(f, "cmp a.py ../again/a.py");
    json_decref(code);
}

static void a_wrong_digest_is_noticed(void **state)
{
    fixture *f = *state;
    make_project(f);
    json_t *code = capture(f);
    json_object_set_new(code, "digest",
                        json_string("00000000000000000000000000000000000000000000000000000000000000ff"));
    assert_int_equal(restore(f, code), TCTL_ECHANGED);
    assert_string_equal(f->err.message, "the kept tree is not what was recorded: its digest is another");
    json_object_set_new(code, "digest", json_integer(3));
    assert_int_equal(restore(f, code), TCTL_EFORMAT);
    json_decref(code);
}

static void malformed_records_are_refused(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *json;
        tctl_status status;
    } cases[] = {
        {"{}", TCTL_EFORMAT},
        {"[]", TCTL_EFORMAT},
        {"{\"kept\": null}", TCTL_EINVAL},
        {"{\"kept\": 3}", TCTL_EFORMAT},
        {"{\"kept\": {}}", TCTL_EFORMAT},
        {"{\"kept\": {\"commit\": \"12\"}}", TCTL_EFORMAT},
        {"{\"kept\": {\"commit\": \"zz00000000000000000000000000000000000000\"}}", TCTL_EFORMAT},
        {"{\"kept\": {\"commit\": \"1200000000000000000000000000000000000000\"}}", TCTL_ENOENT},
        {"{\"kept\": {\"objects\": \"../../etc/passwd\"}}", TCTL_EFORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *code = json_loads(cases[i].json, 0, NULL);
        assert_non_null(code);
        if (restore(f, code) != cases[i].status)
            fail_msg("%s: %d (%s)", cases[i].json, f->err.code, f->err.message);
        json_decref(code);
    }
}

/* Keeps a listing with one entry, made by hand, and gives a `code` for it. */
static json_t *forge(const fixture *f, const char *lines, size_t n)
{
    tctl_buf text = TCTL_BUF_INIT;
    tctl_object_set set = {.store = f->store};
    tctl_sha256 digest;
    char hex[TCTL_SHA256_HEX];
    tctl_listing_begin(&text);
    tctl_buf_add(&text, lines, n);
    assert_int_equal(tctl_object_put(&set, text.data, text.size, &digest, NULL), TCTL_OK);
    tctl_buf_release(&text);
    tctl_sha256_hex(&digest, hex);
    return json_pack("{s:{s:s}, s:s}", "kept", "objects", hex, "digest", hex);
}

static void a_forged_listing_cannot_leave_the_folder(void **state)
{
    fixture *f = *state;
    tctl_object_set set = {.store = f->store};
    tctl_sha256 evil, target;
    char e[TCTL_SHA256_HEX], t[TCTL_SHA256_HEX], lines[1024];
    assert_int_equal(tctl_object_put(&set, "evil", 4, &evil, NULL), TCTL_OK);
    assert_int_equal(tctl_object_put(&set, "../repo", 7, &target, NULL), TCTL_OK);
    tctl_sha256_hex(&evil, e);
    tctl_sha256_hex(&target, t);
    static const char *const paths[] = {"../evil", "/tmp/trainctl-evil", "a/../../evil", "a//b", "./a", "a/",
                                        ""};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        int n = snprintf(lines, sizeof lines, "f 4 %s %s", e, paths[i]);
        json_t *code = forge(f, lines, (size_t)n + 1);
        assert_int_equal(restore(f, code), TCTL_EFORMAT);
        assert_non_null(strstr(f->err.message, "the path is not a plain relative one"));
        json_decref(code);
    }
    /* Through a link that the listing makes first; "l-x" stands between, so that the parser does not see it. */
    int n = snprintf(lines, sizeof lines, "l 7 %s l%cf 4 %s l-x%cf 4 %s l/evil", t, 0, e, 0, e);
    json_t *code = forge(f, lines, (size_t)n + 1);
    assert_int_equal(restore(f, code), TCTL_EIO);
    assert_non_null(strstr(f->err.message, "cannot make folder 'l/evil'"));
    json_decref(code);
    n = snprintf(lines, sizeof lines, "f 4 %s .GIT/hooks/x", e);
    code = forge(f, lines, (size_t)n + 1);
    assert_int_equal(restore(f, code), TCTL_ECHANGED);
    json_decref(code);
    sh(f, "test ! -e evil && test ! -e ../evil && test -z \"$(ls -A)\"");
}

static void listings_are_checked_line_by_line(void **state)
{
    (void)state;
#define H "0000000000000000000000000000000000000000000000000000000000000000"
    static const struct {
        const char *line, *what;
    } cases[] = {
        {"q 1 " H " a", "the type is none of"},      {"f x " H " a", "the size is not a number"},
        {"f 1", "the size is not a number"},         {"f 1 " H, "the path is missing"},
        {"f 1 - a", "the digest is malformed"},      {"d 0 " H " a", "the digest is malformed"},
        {"f 1 ABCDEF a", "the digest is malformed"}, {"", "the type is none of"},
    };
    tctl_arena *arena = tctl_arena_create();
    tctl_tree_entry *entries;
    size_t n;
    tctl_error err;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tctl_buf text = TCTL_BUF_INIT;
        tctl_listing_begin(&text);
        tctl_buf_add(&text, cases[i].line, strlen(cases[i].line) + 1);
        tctl_error_clear(&err);
        assert_int_equal(tctl_listing_parse(arena, "L", text.data, text.size, &entries, &n, &err),
                         TCTL_EFORMAT);
        if (!strstr(err.message, "'L' is damaged at entry 1: ") || !strstr(err.message, cases[i].what))
            fail_msg("%s: %s", cases[i].line, err.message);
        tctl_buf_release(&text);
    }
    static const char twice[] = "trainctl-tree 1\0f 1 " H " b\0f 1 " H " a";
    assert_int_equal(tctl_listing_parse(arena, "L", twice, sizeof twice, &entries, &n, &err), TCTL_EFORMAT);
    assert_string_equal(err.message, "'L' is damaged at entry 2: the paths are not in order");
    assert_int_equal(tctl_listing_parse(arena, "L", twice, sizeof twice - 1, &entries, &n, &err),
                     TCTL_EFORMAT);
    assert_string_equal(err.message, "'L' is cut short: its last byte is not a NUL");
    assert_int_equal(tctl_listing_parse(arena, "L", "trainctl", 8, &entries, &n, &err), TCTL_EFORMAT);
    static const char good[] = "trainctl-tree 1\0d 0 - a\0x 12 " H " b/c";
    assert_int_equal(tctl_listing_parse(arena, "L", good, sizeof good, &entries, &n, NULL), TCTL_OK);
    assert_int_equal(n, 2);
    assert_string_equal(entries[1].path, "b/c");
    assert_true(entries[1].type == 'x' && entries[1].size == 12);
    tctl_arena_destroy(arena);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_changed_object_is_named),
        CASE(objects_are_shared_and_read_only),
        CASE(an_object_cut_short_is_written_again),
        CASE(a_folder_with_something_in_it_is_refused),
        CASE(a_commit_that_is_gone_is_an_error),
        CASE(a_repository_that_moved_is_found_above_the_store),
        CASE(a_wrong_digest_is_noticed),
        CASE(malformed_records_are_refused),
        CASE(a_forged_listing_cannot_leave_the_folder),
        CASE(listings_are_checked_line_by_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
