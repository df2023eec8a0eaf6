/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our Philox is cuRAND's: the host generator CURAND_RNG_PSEUDO_PHILOX4_32_10 in its default ordering gives, as output
 * i, word i mod 4 of Philox with key = seed and counter = (offset low, offset high, subsequence low, subsequence
 * high), where subsequence = (i/4) mod 65536 and offset = (i/4) / 65536. Runs on the CPU.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <curand.h>

#include "seed/philox.h"

static void the_host_generator_gives_the_same_words(void **state)
{
    (void)state;
    enum { N = 4 * 65536 * 2 + 17 }; /* past the second wrap of the subsequence */
    static const unsigned long long seeds[] = {0, 1029, 0xc886b6904832a61fu};
    unsigned int *got = malloc(N * sizeof *got);
    assert_non_null(got);
    for (size_t s = 0; s < sizeof seeds / sizeof seeds[0]; s++) {
        curandGenerator_t generator;
        assert_int_equal(curandCreateGeneratorHost(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10),
                         CURAND_STATUS_SUCCESS);
        assert_int_equal(curandSetPseudoRandomGeneratorSeed(generator, seeds[s]), CURAND_STATUS_SUCCESS);
        assert_int_equal(curandGenerate(generator, got, N), CURAND_STATUS_SUCCESS);
        uint32_t key[2] = {(uint32_t)seeds[s], (uint32_t)(seeds[s] >> 32)};
        for (uint64_t i = 0; i < N; i++) {
            uint64_t subsequence = i / 4 % 65536, offset = i / 4 / 65536;
            uint32_t counter[4] = {(uint32_t)offset, (uint32_t)(offset >> 32), (uint32_t)subsequence,
                                   (uint32_t)(subsequence >> 32)},
                     words[4];
            tctl_philox(counter, key, words);
            assert_int_equal(got[i], words[i % 4]);
        }
        assert_int_equal(curandDestroyGenerator(generator), CURAND_STATUS_SUCCESS);
    }
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_generator_gives_the_same_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
