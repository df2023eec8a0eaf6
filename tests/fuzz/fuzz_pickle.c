/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a pickle, read by the machine and then listed as torch's tree would be, with one storage "0" of 64 bytes.
 */
#include "manifest/content/torch.h"
#include "tests/fuzz/content_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tctl_status list_pickle(tctl_listing *l, tctl_source *s, const char **ret_format, tctl_error *err)
{
    static const uint8_t storage[64] = {1};
    tctl_storage only = {.key = "0", .bytes = sizeof storage};
    tctl_torch t = {.listing = l, .name = "fuzz", .path = TCTL_BUF_INIT, .storages = &only, .n_storages = 1};
    tctl_pickled *root = NULL;
    uint64_t at = 0;
    tctl_status st = tctl_source_of(l->walk->arena, "storage", storage, sizeof storage, &only.source, err);
    if (st == TCTL_OK)
        st = tctl_pickle_read(l->walk->arena, s, &at, &root, NULL, err);
    TCTL_BUG_IF(st == TCTL_OK && at > s->size);
    if (st == TCTL_OK)
        st = tctl_torch_list_tree(&t, root, err);
    tctl_buf_release(&t.path);
    *ret_format = "torch";
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return try_lister(list_pickle, data, size, NULL);
}
