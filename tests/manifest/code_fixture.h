/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of code capture share: a temporary folder, git commands in it, captures and checks.
 *
 * The git program is used to build repositories, because what is under test must read what git writes. Nothing of
 * the user's or the system's configuration is seen.
 */
#ifndef TCTL_TESTS_CODE_FIXTURE_H
#define TCTL_TESTS_CODE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "manifest/code.h"

typedef struct fixture {
    char base[64];  /* temporary folder */
    char repo[80];  /* base/repo: the project */
    char store[96]; /* base/store: a run store outside it */
    char again[80]; /* base/again: where it is restored */
    tctl_code_request request;
    tctl_error err;
} fixture;

/* Runs a shell script in the project's folder; it must succeed. */
static inline void sh(const fixture *f, const char *script)
{
    char command[8192];
    int n = snprintf(command, sizeof command, "cd '%s' && { %s\n} >/dev/null", f->repo, script);
    assert_in_range(n, 1, sizeof command - 1);
    int rc = system(command);
    if (rc != 0)
        fail_msg("exit %d: %s", rc, script);
}

static inline int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(f->base, sizeof f->base, "/tmp/trainctl-code-XXXXXX");
    assert_non_null(mkdtemp(f->base));
    snprintf(f->repo, sizeof f->repo, "%s/repo", f->base);
    snprintf(f->store, sizeof f->store, "%s/store", f->base);
    snprintf(f->again, sizeof f->again, "%s/again", f->base);
    assert_int_equal(mkdir(f->repo, 0777), 0);
    setenv("HOME", f->base, 1);
    setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
    setenv("GIT_CONFIG_SYSTEM", "/dev/null", 1);
    setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    setenv("GIT_AUTHOR_NAME", "a", 1);
    setenv("GIT_AUTHOR_EMAIL", "a@example.org", 1);
    setenv("GIT_COMMITTER_NAME", "a", 1);
    setenv("GIT_COMMITTER_EMAIL", "a@example.org", 1);
    setenv("GIT_AUTHOR_DATE", "1700000000 +0000", 1);
    setenv("GIT_COMMITTER_DATE", "1700000000 +0000", 1);
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("GIT_DIR");
    f->request = (tctl_code_request){.folder = f->repo, .run = "exp-1", .store = f->store};
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    fixture *f = *state;
    sh(f, "chmod -R u+rwX ..");
    assert_int_equal(tctl_remove_tree(f->base, NULL), TCTL_OK);
    free(f);
    return 0;
}

/* A repository with one commit of a.py, sub/b.py, run.sh (executable), link -> a.py and data.bin. */
static inline void make_project(const fixture *f)
{
    sh(f,
       "git init -q -b main && mkdir sub && echo 'print(1)' >a.py && echo 'x = 2' >sub/b.py &&"
       "printf '#!/bin/sh\\n' >run.sh && chmod +x run.sh && ln -s a.py link && printf 'a\\000b' >data.bin &&"
       "git add -A && git commit -q -m one");
}

static inline json_t *capture(fixture *f)
{
    json_t *code = NULL;
    tctl_error_clear(&f->err);
    if (tctl_code_capture(&f->request, &code, &f->err) != TCTL_OK)
        fail_msg("capture: %s", f->err.message);
    return code;
}

static inline const char *text_of(const json_t *code, const char *key)
{
    const char *text = json_string_value(json_object_get(code, key));
    if (!text)
        fail_msg("no text in '%s'", key);
    return text;
}

static inline const char *kept(const json_t *code, const char *key)
{
    return text_of(json_object_get(code, "kept"), key);
}

static inline bool dirty(const json_t *code)
{
    return json_is_true(json_object_get(code, "dirty"));
}

/* The entry of an array of objects whose "path" this is, with the given status (NULL: any); NULL if there is none. */
static inline const json_t *entry_of(const json_t *code, const char *list, const char *path,
                                     const char *status)
{
    size_t i;
    const json_t *entry;
    json_array_foreach(json_object_get(code, list), i, entry)
    {
        const char *is = json_string_value(json_object_get(entry, "status"));
        if (strcmp(text_of(entry, "path"), path) == 0 && (!status || (is && strcmp(is, status) == 0)))
            return entry;
    }
    return NULL;
}

static inline bool has_note(const json_t *code, const char *part)
{
    size_t i;
    const json_t *note;
    json_array_foreach(json_object_get(code, "notes"), i, note)
    {
        if (strstr(json_string_value(note), part))
            return true;
    }
    return false;
}

static inline void assert_note(const json_t *code, const char *part)
{
    if (!has_note(code, part)) {
        char *all = json_dumps(json_object_get(code, "notes"), 0);
        fail_msg("no note with '%s' in %s", part, all);
    }
}

static inline void assert_changes(const json_t *code, size_t n)
{
    if (json_array_size(json_object_get(code, "changes")) != n) {
        char *all = json_dumps(json_object_get(code, "changes"), 0);
        fail_msg("%zu changes expected: %s", n, all);
    }
}

/* Restores into base/again, made anew. */
static inline tctl_status restore(fixture *f, const json_t *code)
{
    tctl_error_clear(&f->err);
    assert_int_equal(tctl_remove_tree(f->again, NULL), TCTL_OK);
    return tctl_code_restore(code, f->store, f->again, &f->err);
}

static inline void assert_restored(fixture *f, const json_t *code)
{
    if (restore(f, code) != TCTL_OK)
        fail_msg("restore: %s", f->err.message);
}

/* What was restored equals the project byte for byte, but for .git. */
static inline void assert_same_tree(fixture *f, const json_t *code)
{
    assert_restored(f, code);
    sh(f, "diff -r --no-dereference -x .git . ../again && list() { find . -name .git -prune -o ! -type d "
          "-printf '%m %y %p\\n' |"
          "sort; } && list >../1 && (cd ../again && list) >../2 && cmp ../1 ../2");
}

#endif
