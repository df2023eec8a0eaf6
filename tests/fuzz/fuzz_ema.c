/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the saved state of the plugin 'ema'. What is accepted must be saved again as the same bytes; what is
 * refused must leave nothing allocated. Memory is limited to 1 MiB per allocation, so that a header that promises more
 * shows as "out of memory" and not as a slow input.
 */
#include "plugins/ema/ema.c"

#include "tests/plugins/fake_host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input, read as the state and compared with what is saved. */
typedef struct tape {
    const uint8_t *data;
    size_t size, at;
} tape;

static tctl_status read_tape(const tctl_reader *r, void *to, size_t n, tctl_error *err)
{
    tape *t = r->impl;
    if (t->size - t->at < n)
        return tctl_fail(err, TCTL_EFORMAT, "state ends early");
    memcpy(to, t->data + t->at, n);
    t->at += n;
    return TCTL_OK;
}

static tctl_status compare_tape(const tctl_writer *w, const void *bytes, size_t n, tctl_error *err)
{
    (void)err;
    tape *t = w->impl;
    if (t->size - t->at < n || memcmp(t->data + t->at, bytes, n) != 0)
        abort();
    t->at += n;
    return TCTL_OK;
}

static void *allocate_little(const tctl_host *host, size_t n)
{
    return n <= (1u << 20) ? fake_allocate(host, n) : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const tctl_memory memory = {
        .struct_size = sizeof memory, .allocate = allocate_little, .release = fake_release};
    static const struct fake_service services[] = {{TCTL_MEMORY_ID, &memory}, {NULL, NULL}};
    fake.services = services;
    tctl_stage *stage = fake_stage(&trainctl_plugin_v1, NULL);
    tape in = {data, size, 0}, out = {data, size, 0};
    const tctl_reader reader = {&in, read_tape};
    const tctl_writer writer = {&out, compare_tape};
    tctl_error err;
    if (state.load(stage, &reader, &err) == TCTL_OK &&
        (state.save(stage, &writer, &err) != TCTL_OK || out.at != in.at))
        abort();
    trainctl_plugin_v1.destroy(stage);
    if (fake.allocated != 0)
        abort();
    return 0;
}
