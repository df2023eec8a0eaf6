/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the repository, and what is said of it as a whole: HEAD, branch, remotes.
 *
 * libgit2 is a library, so no git program is needed and no hook, filter or credential helper ever runs.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "manifest/code_internal.h"
#include "manifest/path_json.h"

const char *tctl_git_message(void)
{
    const git_error *last = git_error_last();
    return last && last->message ? last->message : "unknown error of libgit2";
}

tctl_status tctl_fail_git(tctl_error *err, tctl_status code, const char *fmt, ...)
{
    char what[TCTL_ERROR_NOTE], why[TCTL_ERROR_NOTE];
    snprintf(why, sizeof why, "%s", tctl_git_message());
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return tctl_fail(err, code, "%s: %s", what, why);
}

#if LIBGIT2_VER_MAJOR > 1 || LIBGIT2_VER_MINOR >= 5
int tctl_git_trust_owners(void)
{
    int was = 1;
    git_libgit2_opts(GIT_OPT_GET_OWNER_VALIDATION, &was);
    git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
    return was;
}

void tctl_git_restore_owners(int was)
{
    git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, was);
}
#else /* older ones do not check */
int tctl_git_trust_owners(void)
{
    return 1;
}

void tctl_git_restore_owners(int was)
{
    (void)was;
}
#endif

/* Whether the repository is of use for this folder; if not, says why. */
static bool is_usable(tctl_code_ctx *ctx, git_repository *repo, const char *at, const char *folder)
{
    if (git_repository_is_bare(repo) || !git_repository_workdir(repo)) {
        tctl_code_note(ctx, "skipped the repository '%s/.git': it is bare, it has no working tree", at);
        return false;
    }
    size_t n = strlen(at);
    const char *inside = folder + n;
    while (*inside == '/')
        inside++;
    int ignored = 0;
    if (*inside && git_ignore_path_is_ignored(&ignored, repo, inside) == 0 && ignored) {
        /* Unless something in it is tracked all the same. */
        git_index *index = NULL;
        size_t position;
        const char *below = tctl_arena_format(ctx->arena, "%s/", inside);
        if (below && git_repository_index(&index, repo) == 0)
            ignored = git_index_find_prefix(&position, index, below) != 0;
        git_index_free(index);
    }
    if (ignored)
        tctl_code_note(ctx, "skipped the repository '%s/.git': it ignores the folder '%s'", at, inside);
    return !ignored;
}

git_repository *tctl_code_git_find(tctl_code_ctx *ctx, const char *folder)
{
    char *at = tctl_arena_copy(ctx->arena, folder, strlen(folder));
    while (at) {
        const char *dot_git = tctl_path_join(ctx->arena, at, ".git");
        git_repository *repo = NULL;
        if (dot_git && tctl_path_exists(dot_git)) {
            if (git_repository_open_ext(&repo, at, GIT_REPOSITORY_OPEN_NO_SEARCH, NULL) != 0)
                tctl_code_note(ctx, "skipped '%s', which is no usable repository: %s", dot_git,
                               tctl_git_message());
            else if (is_usable(ctx, repo, strcmp(at, "/") == 0 ? "" : at, folder))
                return repo;
            git_repository_free(repo);
        }
        if (strcmp(at, "/") == 0 || strcmp(at, ".") == 0)
            return NULL;
        at = tctl_path_folder(ctx->arena, at);
    }
    return NULL;
}

const char *tctl_code_clean_url(tctl_arena *arena, const char *url)
{
    const char *scheme = strstr(url, "://");
    const char *host = scheme ? scheme + 3 : url;
    size_t authority = scheme ? strcspn(host, "/?#") : strcspn(host, "/");
    /* "user@host:path", the form of scp, has its user before the first ':'; a local path may hold an '@' too. */
    const char *at = NULL;
    for (size_t i = 0; i < authority; i++) {
        if (host[i] == '@')
            at = host + i; /* the last one: a password may hold an '@' */
    }
    size_t keep = strlen(url);
    if (scheme)
        keep = strcspn(url, "?#");
    if (!at)
        return tctl_arena_copy(arena, url, keep);
    bool git_user = at - host == 3 && strncmp(host, "git", 3) == 0;
    if (git_user)
        return tctl_arena_copy(arena, url, keep);
    return tctl_arena_format(arena, "%.*s%.*s", (int)(host - url), url, (int)(keep - (size_t)(at + 1 - url)),
                             at + 1);
}

/* True if a branch that is known of the remote holds the commit. */
static bool remote_has(git_repository *repo, const char *remote, const git_oid *commit, tctl_arena *arena)
{
    const char *pattern = tctl_arena_format(arena, "refs/remotes/%s/*", remote);
    git_reference_iterator *refs = NULL;
    git_revwalk *walk = NULL;
    bool any = false, has = false;
    if (!pattern || git_reference_iterator_glob_new(&refs, repo, pattern) != 0 ||
        git_revwalk_new(&walk, repo) != 0)
        goto out;
    git_reference *ref;
    while (!has && git_reference_next(&ref, refs) == 0) {
        const git_oid *tip = git_reference_target(ref); /* NULL: symbolic, like origin/HEAD */
        has = tip && git_oid_equal(tip, commit);
        any = (tip && git_revwalk_hide(walk, tip) == 0) || any;
        git_reference_free(ref);
    }
    /* A walk from the commit that hides all that the remote has comes to an end at once. */
    git_oid first;
    if (!has && any && git_revwalk_push(walk, commit) == 0)
        has = git_revwalk_next(&first, walk) == GIT_ITEROVER;
out:
    git_revwalk_free(walk);
    git_reference_iterator_free(refs);
    return has;
}

/* Calls fn with the middle of every variable "<section>.<middle>.<key>". libgit2's own listing of remotes and
 * submodules goes by regular expressions, and 1.5 leaks memory for each variable that does not match. */
tctl_status tctl_git_config_each(const git_config *config, const char *section, const char *key,
                                 tctl_git_config_fn *fn, void *arg, tctl_error *err)
{
    git_config_iterator *all = NULL;
    git_config_entry *entry = NULL;
    size_t s = strlen(section);
    tctl_status status = TCTL_OK;
    if (git_config_iterator_new(&all, config) != 0)
        return tctl_fail_git(err, TCTL_EFORMAT, "cannot read the repository's configuration");
    while (status == TCTL_OK && git_config_next(&entry, all) == 0) {
        const char *name = entry->name, *dot = strrchr(name, '.');
        if (strncmp(name, section, s) != 0 || name[s] != '.' || dot <= name + s || strcmp(dot + 1, key) != 0)
            continue;
        char *middle = strndup(name + s + 1, (size_t)(dot - name) - s - 1);
        status = middle ? fn(arg, middle, entry->value, err) : tctl_fail_memory(err, strlen(name));
        free(middle);
    }
    git_config_iterator_free(all);
    return status;
}

typedef struct remotes {
    tctl_code_ctx *ctx;
    git_repository *repo;
    const git_oid *commit;
    json_t *list;
    size_t n; /* looked at */
    const char *last;
} remotes;

/* One remote: into the list if it holds the commit. Only its first URL counts. */
static tctl_status describe_remote(void *arg, const char *name, const char *url, tctl_error *err)
{
    remotes *r = arg;
    (void)err;
    if (r->last && strcmp(r->last, name) == 0)
        return TCTL_OK;
    r->last = tctl_arena_copy(r->ctx->arena, name, strlen(name));
    r->n++;
    if (tctl_code_late(r->ctx) || !remote_has(r->repo, name, r->commit, r->ctx->arena))
        return TCTL_OK;
    const char *clean = tctl_code_clean_url(r->ctx->arena, url ? url : "");
    json_t *entry = json_object();
    tctl_code_set(r->ctx, entry, "name", tctl_path_to_json(name));
    tctl_code_set(r->ctx, entry, "url", clean ? tctl_path_to_json(clean) : NULL);
    tctl_code_append(r->ctx, r->list, entry);
    return TCTL_OK;
}

static void describe_remotes(tctl_code_ctx *ctx, git_repository *repo, const git_oid *commit, json_t *ret)
{
    remotes r = {.ctx = ctx, .repo = repo, .commit = commit, .list = json_array()};
    git_config *config = NULL;
    tctl_error why = {0};
    if (git_repository_config_snapshot(&config, repo) != 0)
        tctl_code_note(ctx, "the remotes could not be read: %s", tctl_git_message());
    else if (tctl_git_config_each(config, "remote", "url", describe_remote, &r, &why) != TCTL_OK)
        tctl_code_note(ctx, "the remotes could not be read: %s", why.message);
    git_config_free(config);
    if (json_array_size(r.list) == 0 && !ctx->late)
        tctl_code_note(ctx, r.n ? "the commit is on no remote: others cannot get it from there"
                                : "the repository has no remote: others cannot get the commit from one");
    tctl_code_set(ctx, ret, "remotes_with_commit", r.list);
}

/* Branch, also of an unborn HEAD; null if HEAD is detached. */
static json_t *branch_name(git_repository *repo)
{
    static const char heads[] = "refs/heads/";
    git_reference *head = NULL;
    json_t *name = json_null();
    if (git_reference_lookup(&head, repo, "HEAD") == 0 &&
        git_reference_type(head) == GIT_REFERENCE_SYMBOLIC) {
        const char *target = git_reference_symbolic_target(head);
        if (strncmp(target, heads, sizeof heads - 1) == 0)
            target += sizeof heads - 1;
        name = tctl_path_to_json(target);
    }
    git_reference_free(head);
    return name;
}

static void describe_head(tctl_code_ctx *ctx, git_repository *repo, json_t *ret)
{
    git_oid commit;
    git_object *tree = NULL;
    char hex[GIT_OID_HEXSZ + 1];
    tctl_code_set(ctx, ret, "branch", branch_name(repo));
    bool born = git_reference_name_to_id(&commit, repo, "HEAD") == 0;
    tctl_code_set(ctx, ret, "commit",
                  born ? json_string(git_oid_tostr(hex, sizeof hex, &commit)) : json_null());
    bool have_tree = born && git_revparse_single(&tree, repo, "HEAD^{tree}") == 0;
    tctl_code_set(ctx, ret, "tree",
                  have_tree ? json_string(git_oid_tostr(hex, sizeof hex, git_object_id(tree))) : json_null());
    git_object_free(tree);
    if (born)
        describe_remotes(ctx, repo, &commit, ret);
    else
        tctl_code_note(ctx, "the branch has no commit yet");
    if (git_repository_is_shallow(repo) == 1)
        tctl_code_note(ctx, "the repository is shallow: its history is not complete");
}

tctl_status tctl_code_git_capture(tctl_code_ctx *ctx, git_repository *repo, json_t *ret, tctl_error *err)
{
    tctl_code_set(ctx, ret, "vcs", json_string("git"));
    tctl_code_set(ctx, ret, "worktree", json_boolean(git_repository_is_worktree(repo)));
    bool dirty = false;
    git_oid kept;
    tctl_status status = tctl_code_git_level(ctx, repo, "", ret, &dirty, &kept, err);
    if (status != TCTL_OK)
        return status;
    tctl_code_set(ctx, ret, "dirty", json_boolean(dirty));
    /* Last: looking through history is what may take long. */
    describe_head(ctx, repo, ret);
    return TCTL_OK;
}
