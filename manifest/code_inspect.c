/* SPDX-License-Identifier: Apache-2.0 */
/* What a capture would meet, without capturing. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "manifest/code_internal.h"
#include "manifest/path_json.h"

static void inspect_repository(tctl_code_ctx *ctx, git_repository *repo, json_t *ret)
{
    const char *root = git_repository_workdir(repo);
    const char *objects = tctl_path_join(ctx->arena, git_repository_commondir(repo), "objects");
    git_index *index = NULL;
    struct stat st;
    tctl_code_set(ctx, ret, "vcs", json_string("git"));
    tctl_code_set(ctx, ret, "root", tctl_path_to_json(root));
    tctl_code_set(ctx, ret, "owned", json_boolean(stat(root, &st) == 0 && st.st_uid == geteuid()));
    tctl_code_set(ctx, ret, "writable", json_boolean(objects && access(objects, W_OK) == 0));
    bool readable = git_repository_index(&index, repo) == 0;
    if (!readable)
        tctl_code_note(ctx, "the repository could not be read: %s", tctl_git_message());
    git_index_free(index);
    tctl_code_set(ctx, ret, "readable", json_boolean(readable));
}

tctl_status tctl_code_inspect(const char *folder, json_t **ret, tctl_error *err)
{
    tctl_code_ctx ctx;
    tctl_code_request request = {.folder = folder};
    char real[PATH_MAX];
    json_t *result = json_object();
    tctl_status status = tctl_code_ctx_init(&ctx, &request, err);
    if (status == TCTL_OK && !realpath(folder, real))
        status = tctl_fail_errno(err, errno, "cannot find folder '%s'", folder);
    if (status == TCTL_OK && tctl_git_start() < 0)
        status = tctl_fail_git(err, TCTL_EIO, "libgit2 does not start");
    if (status == TCTL_OK) {
        int owners = tctl_git_trust_owners();
        git_repository *repo = tctl_code_git_find(&ctx, real);
        if (repo)
            inspect_repository(&ctx, repo, result);
        else
            tctl_code_set(&ctx, result, "vcs", json_string("none"));
        git_repository_free(repo);
        tctl_git_restore_owners(owners);
        git_libgit2_shutdown();
        tctl_code_set(&ctx, result, "notes", json_incref(ctx.notes));
        if (ctx.no_memory)
            status = tctl_fail_memory(err, sizeof ctx);
    }
    tctl_code_ctx_release(&ctx);
    if (status == TCTL_OK)
        *ret = result;
    else
        json_decref(result);
    return status;
}
