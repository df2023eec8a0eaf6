/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a listing of kept code (what parses is written back to the same bytes), as a Git LFS pointer, and as
 * a remote's URL. */
#include <stdlib.h>
#include <string.h>

#include "manifest/code_internal.h"
#include "manifest/listing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_listing(tctl_arena *arena, const uint8_t *data, size_t size)
{
    tctl_tree_entry *entries = NULL;
    size_t n = 0;
    tctl_error err;
    tctl_error_clear(&err);
    if (tctl_listing_parse(arena, "fuzz", (const char *)data, size, &entries, &n, &err) != TCTL_OK)
        return;
    tctl_buf back = TCTL_BUF_INIT;
    tctl_listing_begin(&back);
    for (size_t i = 0; i < n; i++)
        tctl_listing_add(&back, &entries[i]);
    tctl_tree_entry *again = NULL;
    size_t n_again = 0;
    if (tctl_listing_parse(arena, "again", back.data, back.size, &again, &n_again, &err) != TCTL_OK ||
        n_again != n)
        abort();
    tctl_buf_release(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tctl_arena *arena = tctl_arena_create();
    tctl_sha256 digest;
    uint64_t lfs_size;
    if (!arena)
        return 0;
    try_listing(arena, data, size);
    tctl_lfs_parse((const char *)data, size, &digest, &lfs_size);
    const char *url = tctl_arena_copy(arena, (const char *)data, size);
    if (url)
        tctl_code_clean_url(arena, url);
    tctl_arena_destroy(arena);
    return 0;
}
