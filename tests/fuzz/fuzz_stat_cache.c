/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stat cache's bytes. Whatever the file holds, the cache opens, remembers what it is given, and what it has written
 * is there when it is opened again: the file is mended.
 */
#include "manifest/stat_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/bytes.h"
#include "base/file.h"
#include "manifest/stat_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[32] = "/dev/shm/tctl-fuzz-XXXXXX"; /* fsync costs nothing there */

static void remove_folder(void)
{
    (void)tctl_remove_tree(folder, NULL);
}

/* A real file: the cache renames and replaces it. */
static const char *write_file(const uint8_t *data, size_t size)
{
    static char path[64];
    if (!path[0]) {
        if (!mkdtemp(folder)) {
            snprintf(folder, sizeof folder, "/tmp/tctl-fuzz-XXXXXX");
            TCTL_BUG_IF(!mkdtemp(folder));
        }
        snprintf(path, sizeof path, "%s/stat-v1", folder);
        atexit(remove_folder);
    }
    FILE *f = fopen(path, "we");
    TCTL_BUG_IF(!f);
    TCTL_BUG_IF(fwrite(data, 1, size, f) != size);
    fclose(f);
    return path;
}

static void use(const uint8_t *data, size_t size)
{
    const char *path = write_file(data, size);
    struct stat st;
    memset(&st, 0, sizeof st);
    st.st_mode = S_IFREG;
    st.st_mtim.tv_sec = st.st_ctim.tv_sec = 1000;
    tctl_sha256 digest = tctl_sha256_of("x", 1), back;
    tctl_error why;
    for (int round = 0; round < 2; round++) {
        tctl_stat_cache *cache = tctl_stat_cache_open(path, &why);
        TCTL_BUG_IF(!cache);
        TCTL_BUG_IF(round == 0 && why.code != TCTL_OK && why.code != TCTL_EFORMAT);
        TCTL_BUG_IF(round == 1 && why.code != TCTL_OK);
        bool found = tctl_stat_cache_get(cache, "/a", &st, &back);
        TCTL_BUG_IF(round == 1 && (!found || !tctl_sha256_equal(&back, &digest)));
        (void)tctl_stat_cache_get(cache, "/data/1.jpg", &st, &back);
        tctl_stat_cache_put(cache, "/a", &st, &digest);
        TCTL_BUG_IF(tctl_stat_cache_flush(cache, &why) != TCTL_OK);
        tctl_stat_cache_close(cache);
    }
}

/* Gives every record the checksum that it should have, so that what lies behind the checksum is reached as well. */
static void mend(uint8_t *data, size_t size)
{
    for (size_t at = TCTL_STAT_HEADER; at < size && size - at >= TCTL_STAT_FIXED;) {
        size_t length = tctl_get_u32(data + at + 8);
        if (length < TCTL_STAT_FIXED || length > size - at)
            return;
        tctl_put_u64(data + at, XXH3_64bits(data + at + 8, length - 8));
        at += length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    use(data, size);
    uint8_t *mended = malloc(size + 1);
    TCTL_BUG_IF(!mended);
    memcpy(mended, data, size);
    mend(mended, size);
    use(mended, size);
    free(mended);
    return 0;
}
