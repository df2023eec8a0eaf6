/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests of what the models compute, kept: the same from every compiler, optimization level, processor, SIMD variant
 * and number of threads. A digest changes only together with docs/numerics.md. Run with --print for a new table.
 */
#include "toy.h"

#include "engine/build.h"
#include "zoo.h"

static const uint64_t golden[ZOO] = {
#include "golden.inc"
};

static uint64_t digest_of(const toy *t, uint32_t threads)
{
    tctl_error err = {0};
    tctl_pool *pool = NULL;
    tctl_network *net = NULL;
    if (tctl_pool_create(threads, &pool, &err) || toy_create(t, pool, &net, &err))
        fail_msg("model '%s': %s", t->name, err.message);
    if (!net)
        abort();
    toy_batch batch = toy_make_batch(t, t->batch, 1000, (int)net->loss.classes);
    const tctl_network_memory *m = tctl_network_memory_of(net);
    tctl_network_result r;
    uint64_t hash = digest_floats(DIGEST_START, m->param, m->n_elements);
    assert_int_equal(tctl_network_forward(net, &batch.b, &r, &err), TCTL_OK);
    hash = digest_floats(hash, &r.loss, 1);
    hash = digest_floats(hash, r.outputs, (size_t)t->batch * r.n_classes);
    assert_int_equal(tctl_network_backward(net, &batch.b, &err), TCTL_OK);
    hash = digest_floats(hash, m->grad, m->n_elements);
    hash = digest_floats(hash, m->buffer, m->n_buffer_elements);
    assert_int_equal(tctl_network_evaluate(net, &batch.b, &r, &err), TCTL_OK);
    hash = digest_floats(hash, r.outputs, (size_t)t->batch * r.n_classes);
    toy_free_batch(&batch);
    tctl_network_destroy(net);
    tctl_pool_destroy(pool);
    return hash;
}

static void digests_are_what_they_were(void **state)
{
    (void)state;
    for (size_t z = 0; z < ZOO; z++) {
        uint64_t got = digest_of(&zoo[z], (uint32_t)z % 4 + 1);
        if (got != golden[z])
            fail_msg("model '%s': digest %016llx; it was %016llx", zoo[z].name, (unsigned long long)got,
                     (unsigned long long)golden[z]);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--print") == 0) {
        for (size_t z = 0; z < ZOO; z++)
            printf("    0x%016llxu, /* %s */\n", (unsigned long long)digest_of(&zoo[z], 2), zoo[z].name);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_what_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
