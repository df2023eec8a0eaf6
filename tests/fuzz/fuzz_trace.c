/* SPDX-License-Identifier: Apache-2.0 */
/* A trace's bytes: refused, or read so that a trace equals itself. */
#include "manifest/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "manifest/trace_format.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_back(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = memory_file(data, size, path, sizeof path);
    tctl_arena *arena = tctl_arena_create();
    tctl_trace_data *trace = NULL;
    tctl_error err = {0};
    TCTL_BUG_IF(!arena);
    tctl_status status = tctl_trace_read(arena, path, &trace, &err);
    TCTL_BUG_IF((status == TCTL_OK) != (trace != NULL));
    TCTL_BUG_IF(status != TCTL_OK && (status != TCTL_EFORMAT || err.message[0] == '\0'));
    if (trace) {
        tctl_divergence d = tctl_trace_compare(trace, trace);
        TCTL_BUG_IF(d.kind != TCTL_DIVERGE_NONE);
        TCTL_BUG_IF(trace->n_records > size || trace->n_fields > size);
    }
    tctl_arena_destroy(arena);
    close(fd);
}

/* Gives every record the checksum that it should have, so that what lies behind the checksum is reached as well. */
static void mend(uint8_t *data, size_t size)
{
    if (size < 16)
        return;
    uint32_t n = tctl_get_u32(data + 8);
    size_t at = 16;
    for (uint32_t i = 0; i < n && size - at >= 8; i++) {
        uint32_t length = tctl_get_u32(data + at + 4);
        if (length > size - at - 8)
            return;
        at += 8 + length;
    }
    size_t record = n < size ? tctl_trace_record_bytes(n) : size;
    for (at = (at + 15) & ~(size_t)15; at < size && size - at >= record; at += record)
        tctl_put_u64(data + at + 8, tctl_trace_check(data + at, n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_back(data, size);
    uint8_t *mended = malloc(size + 1);
    TCTL_BUG_IF(!mended);
    memcpy(mended, data, size);
    mend(mended, size);
    read_back(mended, size);
    free(mended);
    return 0;
}
