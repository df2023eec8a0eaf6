/* SPDX-License-Identifier: Apache-2.0 */
/* Code capture: where repositories lie (worktrees, submodules, strays), whose they are, and limits. */
#include "code_fixture.h"

#include "manifest/stat_cache.h"

static void a_worktree_is_a_repository(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "git worktree add -q ../tree -b side && echo 1 >>../tree/a.py && test -f ../tree/.git");
    char tree[128];
    snprintf(tree, sizeof tree, "%s/tree", f->base);
    f->request.folder = tree;
    json_t *code = capture(f);
    assert_true(json_is_true(json_object_get(code, "worktree")));
    assert_string_equal(text_of(code, "branch"), "side");
    assert_non_null(entry_of(code, "changes", "a.py", "modified"));
    assert_restored(f, code);
    sh(f, "diff -r -x .git ../tree ../again && git rev-parse -q --verify refs/trainctl/exp-1 >/dev/null");
    sh(f, "git worktree remove --force ../tree"); /* the commit is in the common repository */
    snprintf(f->store, sizeof f->store, "%s/.trainctl", f->repo);
    assert_restored(f, code);
    json_decref(code);
}

static void make_submodule(fixture *f)
{
    make_project(f);
    sh(f, "git init -q -b main ../lib && (cd ../lib && echo 'y = 1' >y.py && git add -A && git commit -q -m "
          "lib) &&"
          "git -c protocol.file.allow=always submodule --quiet add ../lib vendor/lib 2>/dev/null && git "
          "commit -q -m sub");
}

static void a_submodule_is_kept_in_its_own_repository(void **state)
{
    fixture *f = *state;
    make_submodule(f);
    json_t *clean = capture(f);
    assert_false(dirty(clean));
    assert_string_equal(kept(clean, "commit"), text_of(clean, "commit"));
    const json_t *sub = entry_of(clean, "submodules", "vendor/lib", NULL);
    assert_non_null(sub);
    assert_string_equal(text_of(sub, "commit"), text_of(sub, "recorded"));
    assert_string_equal(text_of(sub, "url"), "../lib");
    assert_same_tree(f, clean);

    sh(f, "echo 'y = 2' >vendor/lib/y.py && echo z >vendor/lib/z.py");
    json_t *code = capture(f);
    assert_true(dirty(code));
    sub = entry_of(code, "submodules", "vendor/lib", NULL);
    assert_true(json_is_true(json_object_get(sub, "dirty")));
    assert_string_not_equal(kept(sub, "commit"), text_of(sub, "commit"));
    assert_non_null(entry_of(code, "changes", "vendor/lib/y.py", "modified"));
    assert_non_null(entry_of(code, "changes", "vendor/lib/z.py", "untracked"));
    assert_same_tree(f, code);
    f->request.no_vcs = true; /* the same digest, whether files are one repository's, two's or none's */
    json_t *none = capture(f);
    assert_string_equal(text_of(code, "digest"), text_of(none, "digest"));
    json_decref(clean);
    json_decref(code);
    json_decref(none);
}

static void a_submodule_that_moved_or_is_absent_is_said(void **state)
{
    fixture *f = *state;
    make_submodule(f);
    sh(f, "cd vendor/lib && echo 3 >y.py && git commit -q -a -m moved");
    json_t *moved = capture(f);
    assert_true(dirty(moved));
    assert_non_null(entry_of(moved, "changes", "vendor/lib", "submodule"));
    const json_t *sub = entry_of(moved, "submodules", "vendor/lib", NULL);
    assert_string_not_equal(text_of(sub, "commit"), text_of(sub, "recorded"));
    assert_same_tree(f, moved);
    sh(f, "git submodule --quiet deinit -f vendor/lib");
    json_t *absent = capture(f);
    assert_note(absent, "submodule 'vendor/lib' is not checked out");
    assert_restored(f, absent);
    sh(f, "test -d ../again/vendor/lib && test -z \"$(ls ../again/vendor/lib)\"");
    json_decref(moved);
    json_decref(absent);
}

static void an_untracked_repository_is_captured_as_files(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "git init -q -b main clone && cd clone && echo 1 >c.py && echo '*.log' >.gitignore && git add -A &&"
          "git commit -q -m c && echo 2 >d.py && echo no >e.log && git init -q empty");
    json_t *code = capture(f);
    assert_true(dirty(code));
    assert_note(code, "'clone' is a repository of its own");
    assert_restored(f, code);
    sh(f, "cmp clone/c.py ../again/clone/c.py && cmp clone/d.py ../again/clone/d.py && test ! -e "
          "../again/clone/e.log");
    json_decref(code);
}

static void a_stray_git_file_above_is_passed_over(void **state)
{
    fixture *f = *state;
    sh(f, "echo 1 >a.py && echo 'what is this' >../.git");
    json_t *code = capture(f);
    assert_string_equal(text_of(code, "vcs"), "none");
    assert_note(code, "which is no usable repository");
    assert_same_tree(f, code);
    sh(f, "rm ../.git && mkdir ../.git");
    json_t *folder = capture(f);
    assert_string_equal(text_of(folder, "vcs"), "none");
    assert_note(folder, "which is no usable repository");
    json_decref(code);
    json_decref(folder);
}

static void a_damaged_repository_is_a_note(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "printf 'DIRC\\0\\0\\0\\2garbage' >.git/index");
    json_t *code = capture(f);
    assert_string_equal(text_of(code, "vcs"), "none");
    assert_note(code, "the repository could not be read: ");
    assert_same_tree(f, code);
    json_decref(code);
}

static void a_bare_repository_has_no_code(void **state)
{
    fixture *f = *state;
    sh(f, "git init -q --bare .git && echo 1 >a.py");
    json_t *code = capture(f);
    assert_string_equal(text_of(code, "vcs"), "none");
    assert_note(code, "it is bare");
    assert_same_tree(f, code);
    json_decref(code);
}

static void a_folder_that_the_repository_ignores_is_captured_without_it(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "echo /work/ >.gitignore && mkdir work && echo 1 >work/a.py");
    char folder[128];
    snprintf(folder, sizeof folder, "%s/work", f->repo);
    f->request.folder = folder;
    json_t *code = capture(f);
    assert_string_equal(text_of(code, "vcs"), "none");
    assert_note(code, "it ignores the folder 'work'");
    assert_restored(f, code);
    sh(f, "cmp work/a.py ../again/a.py");
    json_decref(code);
}

static void another_owner_is_no_obstacle(void **state)
{
    fixture *f = *state;
    if (geteuid() != 0) {
        print_message("only root can give files away\n");
        skip();
    }
    make_project(f);
    sh(f, "chown -R 12345:12345 .");
    json_t *code = capture(f);
    assert_string_equal(text_of(code, "vcs"), "git");
    assert_same_tree(f, code);
    json_decref(code);
}

static void ignored_files_the_store_and_inputs_are_left_out(void **state)
{
    fixture *f = *state;
    make_project(f);
    char input[128], tracked[128];
    snprintf(input, sizeof input, "%s/d [a]*/in", f->repo);
    snprintf(tracked, sizeof tracked, "%s/data.bin", f->repo);
    snprintf(f->store, sizeof f->store, "%s/runs", f->repo);
    sh(f, "echo '*.log' >.gitignore && echo no >x.log && mkdir -p runs 'd [a]*/in' && echo no >runs/r && "
          "echo no >'d [a]*/in/i' &&"
          "echo yes >'d [a]*/o'");
    const char *const inputs[] = {input, tracked, "/nowhere", NULL};
    f->request.inputs = inputs;
    for (int no_vcs = 0; no_vcs < 2; no_vcs++) {
        f->request.no_vcs = no_vcs;
        json_t *code = capture(f);
        assert_restored(f, code);
        sh(f, "cd ../again && cmp ../repo/'d [a]*/o' 'd [a]*/o' && test ! -e runs && test ! -e 'd [a]*/in' "
              "&& test ! -e data.bin");
        assert_null(entry_of(code, "changes", "d [a]*/in/i", NULL));
        assert_null(entry_of(code, "changes", "runs/r", NULL));
        json_decref(code);
    }
    f->request.inputs = NULL;
}

static void limits_leave_out_and_say_so(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "head -c 5000 /dev/zero >large && head -c 600 /dev/zero >m1 && head -c 600 /dev/zero >m2 && echo s "
          ">small");
    f->request.max_bytes = 4096;
    f->request.max_total = 1000;
    for (int no_vcs = 0; no_vcs < 2; no_vcs++) {
        f->request.no_vcs = no_vcs;
        json_t *code = capture(f);
        const json_t *large = entry_of(code, "skipped", "large", NULL),
                     *second = entry_of(code, "skipped", "m2", NULL);
        assert_true(large && second);
        assert_string_equal(text_of(large, "size"), "5000");
        assert_string_equal(text_of(large, "reason"), "larger than the limit for one file");
        /* sha256sum of 5000 zero bytes */
        assert_string_equal(text_of(large, "sha256"),
                            "7ca5bd879f393d9dd05b14f38add9c0fc6b67928f7f2d261b2e47a32ee8219e3");
        assert_string_equal(text_of(second, "reason"), "larger than what is left of the limit for all files");
        assert_string_equal(text_of(code, "skipped_count"), "2");
        assert_restored(f, code);
        sh(f,
           "cd ../again && test ! -e large && test ! -e m2 && cmp m1 ../repo/m1 && cmp small ../repo/small");
        json_decref(code);
    }
    f->request.no_vcs = false;
    f->request.max_bytes = f->request.max_total = 0;
    f->request.max_files = 2;
    json_t *code = capture(f);
    assert_string_equal(text_of(code, "skipped_count"), "2");
    assert_string_equal(text_of(entry_of(code, "skipped", "small", NULL), "reason"),
                        "more files than the limit");
    json_decref(code);
}

static void the_time_limit_stops_the_capture(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "echo 2 >>a.py && echo u >u.py");
    f->request.max_seconds = 1e-9;
    json_t *code = capture(f);
    assert_note(code, "the time limit was met");
    assert_true(json_is_null(json_object_get(code, "digest")));
    assert_non_null(entry_of(code, "skipped", "a.py", NULL));
    assert_restored(f, code); /* what git holds is kept all the same */
    sh(f, "cmp sub/b.py ../again/sub/b.py && test ! -e ../again/a.py");
    f->request.no_vcs = true;
    json_t *none = capture(f);
    assert_note(none, "the time limit was met");
    assert_non_null(entry_of(none, "skipped", ".", NULL));
    json_decref(code);
    json_decref(none);
}

static void a_repository_that_cannot_be_written_falls_back_to_objects(void **state)
{
    fixture *f = *state;
    make_submodule(f);
    sh(f, "echo 2 >>a.py && echo u >u.py && echo not a folder >.git/refs/trainctl");
    json_t *code = capture(f);
    assert_string_equal(text_of(code, "vcs"), "git");
    assert_true(dirty(code));
    assert_note(code, "the repository cannot be written to: ");
    assert_string_equal(kept(code, "objects"), text_of(code, "digest"));
    assert_same_tree(f, code);
    json_decref(code);
}

static void what_tools_make_and_odd_files_are_skipped_by_name(void **state)
{
    fixture *f = *state;
    sh(f, "echo 1 >a.py && mkdir -p .venv/lib node_modules/x env/bin .hidden && echo no >.venv/lib/x && echo "
          "no >node_modules/x/y &&"
          "echo v >env/pyvenv.cfg && echo yes >.hidden/h && mkfifo pipe && mkdir empty");
    json_t *code = capture(f);
    assert_string_equal(text_of(entry_of(code, "skipped", ".venv", NULL), "reason"),
                        "a folder that tools make");
    assert_string_equal(text_of(entry_of(code, "skipped", "node_modules", NULL), "reason"),
                        "a folder that tools make");
    assert_string_equal(text_of(entry_of(code, "skipped", "env", NULL), "reason"),
                        "a Python virtual environment");
    assert_string_equal(text_of(entry_of(code, "skipped", "pipe", NULL), "reason"),
                        "neither a file, nor a folder, nor a link");
    assert_string_equal(text_of(code, "files"), "2");
    assert_restored(f, code);
    sh(f, "cmp .hidden/h ../again/.hidden/h");
    json_decref(code);
}

static void names_that_differ_in_case_only_are_noted(void **state)
{
    fixture *f = *state;
    sh(f, "echo 1 >Model.py && echo 2 >model.py");
    json_t *code = capture(f);
    assert_note(code, "'Model.py' and 'model.py' differ only in case");
    assert_same_tree(f, code);
    json_decref(code);
}

static void the_cache_is_used_and_believed_only_for_the_same_stat(void **state)
{
    fixture *f = *state;
    make_project(f);
    char path[128];
    snprintf(path, sizeof path, "%s/cache", f->base);
    sh(f, "find . -exec touch -h -d 2020-01-01 {} +");
    json_t *plain = capture(f);
    for (int i = 0; i < 2; i++) {
        f->request.cache = tctl_stat_cache_open(path, NULL);
        json_t *code = capture(f);
        assert_string_equal(text_of(code, "digest"), text_of(plain, "digest"));
        json_decref(code);
        tctl_stat_cache_close(f->request.cache);
    }
    sh(f, "printf 'print(7)\\n' >a.py && touch -d 2020-01-01 a.py"); /* same size, same mtime: ctime tells */
    f->request.cache = tctl_stat_cache_open(path, NULL);
    json_t *code = capture(f);
    assert_string_not_equal(text_of(code, "digest"), text_of(plain, "digest"));
    assert_same_tree(f, code);
    tctl_stat_cache_close(f->request.cache);
    json_decref(code);
    json_decref(plain);
}

static void a_run_name_that_git_refuses_is_changed(void **state)
{
    fixture *f = *state;
    make_project(f);
    f->request.run = "a..b.lock";
    json_t *code = capture(f);
    assert_string_equal(kept(code, "ref"), "refs/trainctl/a__b_lock");
    json_decref(code);
}

static void a_missing_folder_is_an_error(void **state)
{
    fixture *f = *state;
    f->request.folder = "/nowhere/at/all";
    json_t *code = NULL;
    assert_int_equal(tctl_code_capture(&f->request, &code, &f->err), TCTL_ENOENT);
    assert_non_null(strstr(f->err.message, "cannot find folder '/nowhere/at/all'"));
    assert_null(code);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_worktree_is_a_repository),
        CASE(a_submodule_is_kept_in_its_own_repository),
        CASE(a_submodule_that_moved_or_is_absent_is_said),
        CASE(an_untracked_repository_is_captured_as_files),
        CASE(a_stray_git_file_above_is_passed_over),
        CASE(a_damaged_repository_is_a_note),
        CASE(a_bare_repository_has_no_code),
        CASE(a_folder_that_the_repository_ignores_is_captured_without_it),
        CASE(another_owner_is_no_obstacle),
        CASE(ignored_files_the_store_and_inputs_are_left_out),
        CASE(limits_leave_out_and_say_so),
        CASE(the_time_limit_stops_the_capture),
        CASE(a_repository_that_cannot_be_written_falls_back_to_objects),
        CASE(what_tools_make_and_odd_files_are_skipped_by_name),
        CASE(names_that_differ_in_case_only_are_noted),
        CASE(the_cache_is_used_and_believed_only_for_the_same_stat),
        CASE(a_run_name_that_git_refuses_is_changed),
        CASE(a_missing_folder_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
