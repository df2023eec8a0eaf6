/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a file of images and as one of labels. Whatever is accepted must be readable to its last value; what
 * is refused must say why, and leave nothing allocated. Memory is limited to 1 MiB per allocation, so that a header
 * that promises more shows as "out of memory" and not as a slow input.
 */
#include <stdint.h>
#include <stdlib.h>

#include "plugins/idx/idx_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *allocate(const void *owner, size_t size_bytes)
{
    (void)owner;
    return size_bytes <= (1u << 20) ? calloc(1, size_bytes) : NULL;
}

static void release(const void *owner, void *bytes)
{
    (void)owner;
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t magics[] = {IDX_IMAGES, IDX_LABELS};
    const idx_memory memory = {NULL, allocate, release};
    for (int i = 0; i < 2; i++) {
        idx_array array;
        idx_problem problem;
        if (!idx_decode(data, size, magics[i], &memory, &array, &problem)) {
            if (problem.reason[0] == '\0')
                abort();
            continue;
        }
        uint64_t values = (uint64_t)array.count * array.height * array.width;
        volatile unsigned char sum = 0;
        for (uint64_t k = 0; k < values; k++)
            sum = (unsigned char)(sum + array.values[k]);
        if (values == 0)
            abort();
        release(NULL, array.bytes);
    }
    return 0;
}
