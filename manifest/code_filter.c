/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What git does to a file between the working tree and the repository: line endings, ident, encodings, drivers, LFS.
 *
 * Nothing is ever run or converted here. The point is to know when "git says unchanged" does not mean "the bytes are
 * the blob's".
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/num.h"
#include "manifest/code_internal.h"

/* A .gitattributes file on disk in one of the folders of the index, or in the index itself. One stat for each
 * folder: looking attributes up costs some 20 us for each file, so it pays to know that there are none. */
static bool folder_has_attributes(tctl_code_ctx *ctx, git_repository *repo, git_index *index)
{
    const char *workdir = git_repository_workdir(repo);
    size_t last = SIZE_MAX; /* length of the folder looked at last */
    const char *last_path = "";
    for (size_t i = 0; i < git_index_entrycount(index); i++) {
        const char *path = git_index_get_byindex(index, i)->path;
        const char *slash = strrchr(path, '/');
        size_t n = slash ? (size_t)(slash - path) : 0;
        if (strcmp(path + (slash ? n + 1 : 0), ".gitattributes") == 0)
            return true;
        if (n == last && strncmp(path, last_path, n) == 0)
            continue;
        last = n;
        last_path = path;
        const char *file = tctl_arena_format(ctx->arena, "%s%.*s/.gitattributes", workdir, (int)n, path);
        if (!file || tctl_path_exists(file))
            return true;
    }
    return false;
}

/* The files outside the working tree: per repository, per user, per system. */
static bool other_attributes(tctl_code_ctx *ctx, git_repository *repo)
{
    git_buf path = {NULL, 0, 0};
    git_config *config = NULL;
    bool found = false;
    if (git_repository_config_snapshot(&config, repo) == 0 &&
        git_config_get_path(&path, config, "core.attributesfile") == 0)
        found = true;
    git_buf_dispose(&path);
    git_config_free(config);
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    const char *files[4] = {"/etc/gitattributes", NULL, NULL, NULL};
    files[1] = tctl_arena_format(ctx->arena, "%sinfo/attributes", git_repository_commondir(repo));
    files[2] = xdg ? tctl_arena_format(ctx->arena, "%s/git/attributes", xdg) : NULL;
    files[3] = home ? tctl_arena_format(ctx->arena, "%s/.config/git/attributes", home) : NULL;
    for (size_t i = 0; i < 4; i++)
        found = found || (files[i] && tctl_path_exists(files[i]));
    return found;
}

tctl_code_filters tctl_code_filters_of(tctl_code_ctx *ctx, git_repository *repo, git_index *index)
{
    tctl_code_filters filters = {.repo = repo, .autocrlf = "false"};
    git_config *config = NULL;
    const char *value = NULL;
    if (git_repository_config_snapshot(&config, repo) == 0 &&
        git_config_get_string(&value, config, "core.autocrlf") == 0) {
        int on = 0;
        if (strcmp(value, "input") == 0)
            filters.autocrlf = "input";
        else if (git_config_parse_bool(&on, value) == 0 && on)
            filters.autocrlf = "true";
    }
    git_config_free(config);
    filters.attributes = other_attributes(ctx, repo) || folder_has_attributes(ctx, repo, index);
    return filters;
}

static bool is_set(const char *attribute)
{
    return GIT_ATTR_IS_TRUE(attribute) || GIT_ATTR_HAS_VALUE(attribute);
}

int tctl_code_filter(const tctl_code_filters *filters, tctl_code_ctx *ctx, const char *path,
                     const char **ret_name)
{
    enum { FILTER, TEXT, EOL, IDENT, ENCODING, CRLF, N };
    static const char *names[N] = {"filter", "text", "eol", "ident", "working-tree-encoding", "crlf"};
    const char *value[N] = {NULL};
    bool text = strcmp(filters->autocrlf, "false") != 0;
    if (filters->attributes && git_attr_get_many(value, filters->repo, 0, path, N, names) != 0)
        return TCTL_FILTER_OTHER; /* can't be told: look at the bytes */
    if (GIT_ATTR_HAS_VALUE(value[FILTER])) {
        *ret_name = tctl_arena_copy(ctx->arena, value[FILTER], strlen(value[FILTER]));
        return strcmp(value[FILTER], "lfs") == 0 ? TCTL_FILTER_LFS : TCTL_FILTER_OTHER;
    }
    if (is_set(value[IDENT]) || GIT_ATTR_HAS_VALUE(value[ENCODING])) {
        *ret_name = is_set(value[IDENT]) ? "ident" : "working-tree-encoding";
        return TCTL_FILTER_OTHER;
    }
    if (GIT_ATTR_IS_FALSE(value[TEXT]) || GIT_ATTR_IS_FALSE(value[CRLF]))
        text = false;
    else if (is_set(value[TEXT]) || is_set(value[EOL]) || is_set(value[CRLF]))
        text = true;
    *ret_name = text ? "text" : NULL;
    return text ? TCTL_FILTER_TEXT : TCTL_FILTER_NONE;
}

/* The value of `key` in a line "key value"; NULL if the line has another key. */
static const char *line_value(const char *line, size_t n, const char *key, size_t *ret_n)
{
    size_t k = strlen(key);
    if (n <= k || strncmp(line, key, k) != 0 || line[k] != ' ')
        return NULL;
    *ret_n = n - k - 1;
    return line + k + 1;
}

bool tctl_lfs_parse(const char *text, size_t size, tctl_sha256 *ret, uint64_t *ret_size)
{
    static const char version[] = "version https://git-lfs.github.com/spec/v1\n";
    if (size > TCTL_LFS_POINTER_MAX || size < sizeof version - 1 ||
        memcmp(text, version, sizeof version - 1) != 0)
        return false;
    bool have_oid = false, have_size = false;
    const char *end = text + size;
    for (const char *p = text + sizeof version - 1; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        if (!newline)
            return false;
        size_t n;
        const char *value = line_value(p, (size_t)(newline - p), "oid", &n);
        if (value && n == 71 && memcmp(value, "sha256:", 7) == 0) {
            char hex[TCTL_SHA256_HEX] = "";
            memcpy(hex, value + 7, 64);
            have_oid = tctl_sha256_parse(hex, ret);
        }
        value = line_value(p, (size_t)(newline - p), "size", &n);
        if (value)
            have_size = tctl_parse_uint(value, n, ret_size);
        p = newline + 1;
    }
    return have_oid && have_size;
}
