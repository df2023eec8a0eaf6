/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between two trees, in words. */
#include <string.h>

#include "manifest/path_json.h"
#include "manifest/tree.h"

typedef struct explainer {
    tctl_buf *out;
    uint32_t at_most;
    uint64_t n; /* differences so far */
} explainer;

static const char *type_name(char type)
{
    switch (type) {
    case 'l':
        return "a link";
    case 'd':
        return "an empty folder";
    case 'x':
        return "an executable file";
    default:
        return "a file";
    }
}

/* Starts a line; false once there are enough. */
static bool begin(explainer *x, const char *word, const tctl_tree_entry *e)
{
    if (x->n++ >= x->at_most)
        return false;
    if (x->n > 1)
        tctl_buf_add_char(x->out, '\n');
    tctl_buf_add_format(x->out, "%s: ", word);
    if (e->path[0])
        tctl_path_escape(e->path, x->out);
    else
        tctl_buf_add_text(x->out, "the file");
    return true;
}

static void compare_entry(explainer *x, const tctl_tree_entry *was, const tctl_tree_entry *is)
{
    bool same_content = was->size == is->size && tctl_sha256_equal(&was->digest, &is->digest);
    if ((was->type == is->type && same_content) || !begin(x, "changed", is))
        return;
    if (was->type != is->type)
        tctl_buf_add_format(x->out, " (was %s, is %s)", type_name(was->type), type_name(is->type));
    else if (was->size != is->size)
        tctl_buf_add_format(x->out, " (was %llu bytes, is %llu)", (unsigned long long)was->size,
                            (unsigned long long)is->size);
    else
        tctl_buf_add_text(x->out, " (same size, other bytes)");
}

void tctl_tree_explain(const tctl_tree *was, const tctl_tree *is, uint32_t at_most, tctl_buf *ret)
{
    explainer x = {ret, at_most, 0};
    if (was->is_folder != is->is_folder) {
        tctl_buf_add_format(ret, "changed: was a %s, is a %s", was->is_folder ? "folder" : "file",
                            is->is_folder ? "folder" : "file");
        return;
    }
    uint64_t a = 0, b = 0;
    while (a < was->n_entries || b < is->n_entries) {
        int order = a == was->n_entries  ? 1
                    : b == is->n_entries ? -1
                                         : strcmp(was->entries[a].path, is->entries[b].path);
        if (order < 0)
            begin(&x, "missing", &was->entries[a++]);
        else if (order > 0)
            begin(&x, "new", &is->entries[b++]);
        else
            compare_entry(&x, &was->entries[a++], &is->entries[b++]);
    }
    if (x.n > at_most)
        tctl_buf_add_format(ret, "%sand %llu more", at_most ? "\n" : "", (unsigned long long)(x.n - at_most));
}
