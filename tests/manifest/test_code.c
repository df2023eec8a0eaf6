/* SPDX-License-Identifier: Apache-2.0 */
/* Code capture inside git: what is seen, what is kept, and that nothing of the user's is touched. */
#include "code_fixture.h"

static void a_clean_tree_is_heads_commit(void **state)
{
    fixture *f = *state;
    make_project(f);
    json_t *code = capture(f);
    assert_string_equal(text_of(code, "vcs"), "git");
    assert_string_equal(text_of(code, "branch"), "main");
    assert_false(dirty(code));
    assert_changes(code, 0);
    assert_string_equal(kept(code, "ref"), "refs/trainctl/exp-1");
    assert_string_equal(kept(code, "commit"), text_of(code, "commit"));
    assert_string_equal(kept(code, "tree"), text_of(code, "tree"));
    assert_string_equal(text_of(code, "folder"), "");
    assert_string_equal(text_of(code, "autocrlf"), "false");
    assert_note(code, "has no remote");
    assert_same_tree(f, code);
    sh(f, "test \"$(git rev-parse refs/trainctl/exp-1)\" = \"$(git rev-parse HEAD)\"");
    json_decref(code);
}

static void every_kind_of_change_is_seen_and_kept(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "seq 100 >long.txt && echo gone >gone.py && echo moved by hand >hand.txt && git add -A && git "
          "commit -q -m two");
    sh(f,
       "echo staged >staged.py && git add staged.py && echo more >>staged.py &&" /* staged, then changed again */
       "git rm -q gone.py && echo 'x = 3' >sub/b.py && chmod +x a.py && printf 'a\\000c' >data.bin &&"
       "git mv long.txt renamed.txt && echo 101 >>renamed.txt && git add renamed.txt && mv hand.txt "
       "other.txt &&"
       "echo new >untracked.py && mkdir -p deep/er && echo new >deep/er/u.py && rm run.sh && ln -s /nowhere "
       "broken");
    json_t *code = capture(f);
    assert_true(dirty(code));
    const json_t *c = entry_of(code, "changes", "staged.py", "added");
    assert_true(c && json_is_true(json_object_get(c, "staged")) &&
                json_is_false(json_object_get(c, "binary")));
    c = entry_of(code, "changes", "staged.py", "modified");
    assert_true(c && json_is_false(json_object_get(c, "staged")));
    c = entry_of(code, "changes", "gone.py", "deleted");
    assert_true(c && json_is_true(json_object_get(c, "staged")));
    c = entry_of(code, "changes", "run.sh", "deleted");
    assert_true(c && json_is_false(json_object_get(c, "staged")));
    assert_non_null(entry_of(code, "changes", "sub/b.py", "modified"));
    c = entry_of(code, "changes", "a.py", "mode");
    assert_non_null(c);
    assert_string_equal(text_of(c, "old_mode"), "100644");
    assert_string_equal(text_of(c, "mode"), "100755");
    c = entry_of(code, "changes", "data.bin", "modified");
    assert_true(c && json_is_true(json_object_get(c, "binary")));
    c = entry_of(code, "changes", "renamed.txt", "renamed");
    assert_non_null(c);
    assert_string_equal(text_of(c, "old_path"), "long.txt");
    c = entry_of(code, "changes", "other.txt", "renamed");
    assert_non_null(c);
    assert_string_equal(text_of(c, "old_path"), "hand.txt");
    assert_non_null(entry_of(code, "changes", "untracked.py", "untracked"));
    assert_non_null(entry_of(code, "changes", "deep/er/u.py", "untracked"));
    assert_non_null(entry_of(code, "changes", "broken", "untracked"));
    assert_changes(code, 12);
    const json_t *counts = json_object_get(code, "counts");
    assert_string_equal(text_of(counts, "staged"), "3");
    assert_string_equal(text_of(counts, "unstaged"), "6");
    assert_string_equal(text_of(counts, "untracked"), "3");
    assert_same_tree(f, code);
    sh(f,
       "git show -q refs/trainctl/exp-1 && git diff --quiet refs/trainctl/exp-1^ HEAD && git fsck --strict");
    json_decref(code);
}

static void index_branch_and_files_stay_as_they_are(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "echo 1 >>a.py && git add a.py && echo 2 >>a.py && touch sub/b.py && echo u >u.py");
    sh(f, "cp .git/index ../index && git stash list >../stash && cp -r .git/logs ../logs && cp .git/HEAD "
          "../head &&"
          "git for-each-ref refs/heads >../heads && stat -c '%n %Y %s %i' * sub/* >../stat && cp .git/config "
          "../config");
    json_decref(capture(f));
    sh(f, "cmp .git/index ../index && diff -r .git/logs ../logs && cmp .git/HEAD ../head && cmp .git/config "
          "../config &&"
          "git for-each-ref refs/heads | cmp - ../heads && stat -c '%n %Y %s %i' * sub/* | cmp - ../stat");
}

static void staged_alone_is_kept(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "echo 'print(2)' >a.py && git add a.py");
    json_t *code = capture(f);
    assert_true(dirty(code));
    assert_changes(code, 1);
    assert_true(json_is_true(json_object_get(entry_of(code, "changes", "a.py", "modified"), "staged")));
    assert_same_tree(f, code);
    json_decref(code);
}

static void a_large_file_is_streamed_into_git(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "head -c 9000001 /dev/urandom >data.bin && cp data.bin large.bin");
    json_t *code = capture(f);
    assert_true(json_is_true(json_object_get(entry_of(code, "changes", "data.bin", "modified"), "binary")));
    assert_same_tree(f, code);
    f->request.no_vcs = true;
    json_t *none = capture(f);
    assert_string_equal(text_of(code, "digest"), text_of(none, "digest"));
    json_decref(code);
    json_decref(none);
}

static void the_same_tree_gives_the_same_commit(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "echo 'print(2)' >a.py");
    json_t *one = capture(f);
    sh(f, "git add a.py"); /* staged or not: the same bytes ran */
    f->request.run = "exp-2";
    json_t *two = capture(f);
    assert_string_equal(kept(one, "commit"), kept(two, "commit"));
    assert_string_equal(text_of(one, "digest"), text_of(two, "digest"));
    sh(f, "echo 'print(3)' >a.py");
    f->request.run = "exp-3";
    json_t *three = capture(f);
    assert_string_not_equal(kept(one, "commit"), kept(three, "commit"));
    assert_string_not_equal(text_of(one, "digest"), text_of(three, "digest"));
    sh(f, "test $(git for-each-ref refs/trainctl | wc -l) = 3");
    json_decref(one);
    json_decref(two);
    json_decref(three);
}

static void git_and_no_git_have_one_digest(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "echo new >u.py && ln -s nowhere broken && chmod +x u.py");
    json_t *git = capture(f);
    f->request.no_vcs = true;
    json_t *none = capture(f);
    assert_string_equal(text_of(none, "vcs"), "none");
    assert_string_equal(text_of(git, "digest"), text_of(none, "digest"));
    assert_string_equal(kept(none, "objects"), text_of(none, "digest"));
    assert_same_tree(f, none);
    json_decref(git);
    json_decref(none);
}

static void a_folder_within_the_repository_is_named(void **state)
{
    fixture *f = *state;
    make_project(f);
    char folder[128];
    snprintf(folder, sizeof folder, "%s/sub", f->repo);
    f->request.folder = folder;
    json_t *code = capture(f);
    assert_string_equal(text_of(code, "folder"), "sub");
    assert_same_tree(f, code); /* all of it: code is imported from elsewhere in the repository */
    json_decref(code);
}

static void names_of_any_bytes_come_back(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "echo 1 >\"$(printf 'new\\nline.py')\" && echo 2 >\"$(printf 'bad-\\377.py')\" && echo 3 "
          ">'back\\slash' &&"
          "git add -A && git commit -q -m names && echo 4 >\"$(printf 'bad-\\377.py')\" && echo 5 >' sp "
          "ace*?['");
    json_t *code = capture(f);
    assert_non_null(entry_of(code, "changes", "bad-\\xff.py", "modified"));
    assert_non_null(entry_of(code, "changes", " sp ace*?[", "untracked"));
    assert_same_tree(f, code);
    f->request.no_vcs = true;
    json_t *none = capture(f);
    assert_string_equal(text_of(code, "digest"), text_of(none, "digest"));
    assert_same_tree(f, none);
    json_decref(code);
    json_decref(none);
}

static void autocrlf_does_not_hide_the_bytes(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "git config core.autocrlf true && printf 'one\\r\\ntwo\\r\\n' >crlf.txt && git add crlf.txt &&"
          "git commit -q -m crlf && test -z \"$(git status --porcelain)\"");
    json_t *code = capture(f);
    assert_false(dirty(code)); /* as git says */
    assert_string_equal(text_of(code, "autocrlf"), "true");
    assert_string_not_equal(kept(code, "tree"), text_of(code, "tree"));
    assert_true(json_integer_value(json_object_get(json_object_get(code, "filters"), "text")) > 0);
    assert_same_tree(f, code);
    json_decref(code);
}

static void attributes_do_not_hide_the_bytes(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "echo '*.txt text=auto eol=crlf' >.gitattributes && echo 'i.c ident' >>.gitattributes &&"
          "printf 'one\\r\\n' >crlf.txt && printf '$Id$\\n' >i.c && git add -A && git commit -q -m a && rm "
          "i.c &&"
          "git checkout -q i.c && grep -q 'Id: ' i.c");
    json_t *code = capture(f);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(code, "filters"), "ident")), 1);
    assert_same_tree(f, code);
    json_decref(code);
}

static void filters_are_never_run(void **state)
{
    fixture *f = *state;
    make_project(f);
    /* Once the file is in, running either command would leave a trace. */
    sh(f,
       "echo '*.enc filter=rot' >.gitattributes && git config filter.rot.clean 'tr a-z n-za-m' &&"
       "git config filter.rot.smudge 'tr a-z n-za-m' && git config filter.rot.required true &&"
       "echo secret >x.enc && git add -A && git commit -q -m enc && test \"$(git show HEAD:x.enc)\" = frperg "
       "&&"
       "git config filter.rot.clean 'touch ../ran; cat' && git config filter.rot.smudge 'touch ../ran; cat'");
    json_t *code = capture(f);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(code, "filters"), "rot")), 1);
    assert_same_tree(f, code);
    sh(f, "test ! -e ../ran");
    json_decref(code);
}

/* A file whose blob is a pointer: "content of 21 bytes!!" and its SHA-256. */
static const char make_lfs[] =
    "echo '*.big filter=lfs diff=lfs merge=lfs -text' >.gitattributes && git config filter.lfs.clean 'touch "
    "../ran; cat' &&"
    "git config filter.lfs.smudge 'touch ../ran; cat' && printf 'content of 21 bytes!!' >w.big &&"
    "oid=$(sha256sum <w.big | cut -c1-64) && mkdir -p .git/lfs/objects/$(echo $oid | cut -c1-2)/$(echo $oid "
    "| cut -c3-4) &&"
    "cp w.big .git/lfs/objects/$(echo $oid | cut -c1-2)/$(echo $oid | cut -c3-4)/$oid &&"
    "printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize 21\\n' $oid >../pointer &&"
    "blob=$(git hash-object -w --no-filters ../pointer) && git add .gitattributes &&"
    "git update-index --add --cacheinfo 100644,$blob,w.big && git commit -q -m lfs && touch -d '2001-01-01' "
    "w.big";

static void lfs_content_is_known_by_its_pointer(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, make_lfs);
    sh(f, "rm -f ../ran"); /* git itself ran it */
    json_t *code = capture(f);
    assert_false(dirty(code)); /* although the index's stat says nothing */
    assert_changes(code, 0);
    const json_t *lfs = entry_of(code, "lfs", "w.big", NULL);
    assert_non_null(lfs);
    assert_string_equal(text_of(lfs, "size"), "21");
    assert_string_equal(kept(code, "tree"), text_of(code, "tree")); /* the content is not copied into git */
    sh(f, "test ! -e ../ran");
    assert_same_tree(f, code);
    f->request.no_vcs = true;
    json_t *none = capture(f);
    assert_string_equal(text_of(code, "digest"), text_of(none, "digest"));
    sh(f, "find .git/lfs/objects -type f -delete");
    assert_int_equal(restore(f, code), TCTL_ENOENT);
    assert_non_null(strstr(f->err.message, "the content of 'w.big' (sha256 "));
    json_decref(code);
    json_decref(none);
}

static void lfs_pointers_that_were_not_fetched_stay_pointers(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, make_lfs);
    sh(f, "cp ../pointer w.big");
    json_t *code = capture(f);
    assert_false(dirty(code));
    assert_null(entry_of(code, "lfs", "w.big", NULL));
    assert_same_tree(f, code);
    sh(f, "echo other >w.big");
    json_t *changed = capture(f);
    assert_non_null(entry_of(changed, "changes", "w.big", "modified"));
    assert_same_tree(f, changed);
    json_decref(code);
    json_decref(changed);
}

static void a_branch_without_commit_is_captured(void **state)
{
    fixture *f = *state;
    sh(f, "git init -q -b trunk");
    json_t *empty = capture(f);
    assert_true(json_is_null(json_object_get(empty, "commit")));
    assert_true(json_is_null(json_object_get(empty, "tree")));
    assert_string_equal(text_of(empty, "branch"), "trunk");
    assert_note(empty, "the branch has no commit yet");
    assert_false(dirty(empty));
    assert_same_tree(f, empty);
    sh(f, "echo 1 >a.py && git add a.py && echo 2 >b.py");
    json_t *code = capture(f);
    assert_true(dirty(code));
    assert_non_null(entry_of(code, "changes", "a.py", "added"));
    assert_non_null(entry_of(code, "changes", "b.py", "untracked"));
    assert_same_tree(f, code);
    json_decref(empty);
    json_decref(code);
}

static void a_detached_head_has_no_branch(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "git checkout -q --detach");
    json_t *code = capture(f);
    assert_true(json_is_null(json_object_get(code, "branch")));
    assert_string_equal(kept(code, "commit"), text_of(code, "commit"));
    json_decref(code);
}

static void remotes_that_hold_the_commit_are_named_without_credentials(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "git remote add origin 'https://me:hunter2@example.org/p.git?token=abc' && git remote add other "
          "/srv/p.git &&"
          "echo 2 >>a.py && git commit -q -a -m two && git update-ref refs/remotes/origin/main HEAD &&"
          "git update-ref refs/remotes/other/main HEAD~1");
    json_t *code = capture(f);
    const json_t *remotes = json_object_get(code, "remotes_with_commit");
    assert_int_equal(json_array_size(remotes), 1);
    assert_string_equal(text_of(json_array_get(remotes, 0), "name"), "origin");
    assert_string_equal(text_of(json_array_get(remotes, 0), "url"), "https://example.org/p.git");
    sh(f, "git reset -q --hard HEAD~1"); /* an ancestor is on both */
    json_t *older = capture(f);
    assert_int_equal(json_array_size(json_object_get(older, "remotes_with_commit")), 2);
    sh(f, "echo 3 >>a.py && git commit -q -a -m three");
    json_t *unpushed = capture(f);
    assert_int_equal(json_array_size(json_object_get(unpushed, "remotes_with_commit")), 0);
    assert_note(unpushed, "the commit is on no remote");
    char *all = json_dumps(unpushed, 0);
    assert_null(strstr(all, "hunter2"));
    free(all);
    json_decref(code);
    json_decref(older);
    json_decref(unpushed);
}

static void a_conflict_is_captured_as_it_lies_there(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "git checkout -q -b side && echo side >a.py && git commit -q -a -m s && git checkout -q main &&"
          "echo main >a.py && git commit -q -a -m m && ! git merge -q side 2>/dev/null");
    json_t *code = capture(f);
    assert_non_null(entry_of(code, "changes", "a.py", "conflicted"));
    assert_same_tree(f, code);
    json_decref(code);
}

static void a_file_may_become_a_folder_and_back(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "rm a.py && mkdir a.py && echo 1 >a.py/x && rm -r sub && echo 2 >sub && rm link && echo 3 >link");
    json_t *code = capture(f);
    assert_non_null(entry_of(code, "changes", "link", "type"));
    assert_same_tree(f, code);
    json_decref(code);
}

static void hidden_flags_of_the_index_hide_nothing(void **state)
{
    fixture *f = *state;
    make_project(f);
    sh(f, "git update-index --assume-unchanged a.py && echo changed >>a.py && git update-index "
          "--skip-worktree sub/b.py &&"
          "rm sub/b.py && echo note >n.txt && git add -N n.txt");
    json_t *code = capture(f);
    assert_note(code, "sparse checkout leaves out 1 files");
    assert_null(entry_of(code, "changes", "sub/b.py", NULL));
    assert_restored(f, code);
    sh(f, "cmp a.py ../again/a.py && test ! -e ../again/sub/b.py && cmp n.txt ../again/n.txt");
    json_decref(code);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_clean_tree_is_heads_commit),
        CASE(every_kind_of_change_is_seen_and_kept),
        CASE(index_branch_and_files_stay_as_they_are),
        CASE(staged_alone_is_kept),
        CASE(a_large_file_is_streamed_into_git),
        CASE(the_same_tree_gives_the_same_commit),
        CASE(git_and_no_git_have_one_digest),
        CASE(a_folder_within_the_repository_is_named),
        CASE(names_of_any_bytes_come_back),
        CASE(autocrlf_does_not_hide_the_bytes),
        CASE(attributes_do_not_hide_the_bytes),
        CASE(filters_are_never_run),
        CASE(lfs_content_is_known_by_its_pointer),
        CASE(lfs_pointers_that_were_not_fetched_stay_pointers),
        CASE(a_branch_without_commit_is_captured),
        CASE(a_detached_head_has_no_branch),
        CASE(remotes_that_hold_the_commit_are_named_without_credentials),
        CASE(a_conflict_is_captured_as_it_lies_there),
        CASE(a_file_may_become_a_folder_and_back),
        CASE(hidden_flags_of_the_index_hide_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
