/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The matrix product against one scalar chain of fused multiply-adds per element: equal bits, for every variant
 * that this processor runs, every transposition, edge sizes, and however the work is cut.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/gemm/gemm.h"
#include "numbers.h"

typedef struct problem {
    size_t m, n, k, lda, ldb, ldc;
    bool a_transposed, b_transposed;
    float *a, *b, *c, *bias, *expected;
} problem;

static const struct {
    size_t m, n, k;
} sizes[] = {
    {1, 1, 1},    {1, 1, 0},     {5, 17, 0},     {6, 16, 7},     {7, 17, 9},    {3, 8, 300},    {13, 64, 257},
    {97, 33, 27}, {131, 203, 9}, {5, 300, 1157}, {192, 10, 128}, {50, 70, 513}, {96, 256, 256},
};

static problem make_problem(size_t m, size_t n, size_t k, bool at, bool bt)
{
    problem p = {.m = m, .n = n, .k = k, .a_transposed = at, .b_transposed = bt};
    p.lda = (at ? m : k) + 3;
    p.ldb = (bt ? k : n) + 1;
    p.ldc = n + 2;
    p.a = random_floats((at ? k : m) * p.lda, 1);
    p.b = random_floats((bt ? n : k) * p.ldb, 2);
    p.c = random_floats(m * p.ldc, 3);
    p.bias = random_floats(n, 4);
    p.expected = random_floats(m * p.ldc, 3);
    return p;
}

static void free_problem(problem *p)
{
    free(p->a);
    free(p->b);
    free(p->c);
    free(p->bias);
    free(p->expected);
}

static void naive(problem *p, tctl_gemm_start start)
{
    for (size_t i = 0; i < p->m; i++) {
        for (size_t j = 0; j < p->n; j++) {
            float *out = &p->expected[i * p->ldc + j];
            float c = start == TCTL_GEMM_ZERO ? 0 : start == TCTL_GEMM_BIAS ? p->bias[j] : *out;
            for (size_t q = 0; q < p->k; q++)
                c = fmaf(p->a[p->a_transposed ? q * p->lda + i : i * p->lda + q],
                         p->b[p->b_transposed ? j * p->ldb + q : q * p->ldb + j], c);
            *out = c;
        }
    }
}

static tctl_gemm_call call_of(const problem *p, const tctl_simd *simd, tctl_gemm_start start)
{
    tctl_gemm_matrix a = {p->a, (ptrdiff_t)p->lda, 1}, b = {p->b, (ptrdiff_t)p->ldb, 1};
    if (p->a_transposed)
        a = (tctl_gemm_matrix){p->a, 1, (ptrdiff_t)p->lda};
    if (p->b_transposed)
        b = (tctl_gemm_matrix){p->b, 1, (ptrdiff_t)p->ldb};
    return (tctl_gemm_call){.simd = simd,
                            .m = p->m,
                            .n = p->n,
                            .k = p->k,
                            .a = a,
                            .b = b,
                            .c = p->c,
                            .c_row = p->ldc,
                            .start = start,
                            .bias = p->bias};
}

static void check(const tctl_simd *simd, size_t s, bool at, bool bt, tctl_gemm_start start)
{
    problem p = make_problem(sizes[s].m, sizes[s].n, sizes[s].k, at, bt);
    float *scratch = random_floats(tctl_gemm_scratch_floats(simd), 5);
    naive(&p, start);
    tctl_gemm_call g = call_of(&p, simd, start);
    g.scratch = scratch;
    tctl_gemm(&g);
    if (memcmp(p.c, p.expected, p.m * p.ldc * sizeof *p.c) != 0)
        fail_msg("%s: %zu x %zu x %zu, a%s b%s, start %d: bits differ", simd->name, p.m, p.n, p.k,
                 at ? "^T" : "", bt ? "^T" : "", (int)start);
    free(scratch);
    free_problem(&p);
}

static void every_variant_is_one_chain_per_element(void **state)
{
    (void)state;
    uint32_t n;
    const tctl_simd *const *simd = tctl_simd_available(&n);
    for (uint32_t v = 0; v < n; v++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            for (int t = 0; t < 4; t++) {
                for (int start = TCTL_GEMM_ZERO; start <= TCTL_GEMM_C; start++)
                    check(simd[v], s, t & 1, t & 2, (tctl_gemm_start)start);
            }
        }
    }
}

/* Rows, columns and k cut at odd places, B packed by the caller: the same bits as in one call. */
static void cutting_the_work_does_not_show(void **state)
{
    (void)state;
    uint32_t n;
    const tctl_simd *const *simd = tctl_simd_available(&n);
    for (uint32_t v = 0; v < n; v++) {
        problem p = make_problem(61, 150, 411, false, true);
        naive(&p, TCTL_GEMM_BIAS);
        float *packed = random_floats(tctl_gemm_packed_floats(simd[v], p.k, p.n), 6);
        static const size_t k_cuts[] = {0, 1, 130, 400, 411}, m_cuts[] = {0, 5, 6, 40, 61};
        for (size_t c = 0; c < 4; c++) {
            tctl_gemm_call g = call_of(&p, simd[v], c ? TCTL_GEMM_C : TCTL_GEMM_BIAS);
            g.k = k_cuts[c + 1] - k_cuts[c];
            g.a.data += k_cuts[c];
            g.b.data += k_cuts[c];
            for (size_t q = 0; q < tctl_gemm_panels(simd[v], p.n); q++)
                tctl_gemm_pack(simd[v], &g.b, g.k, p.n, q,
                               packed + q * g.k * tctl_gemm_panel_columns(simd[v]));
            g.packed_b = packed;
            for (size_t r = 0; r < 4; r++) {
                tctl_gemm_call part = g;
                part.m = m_cuts[r + 1] - m_cuts[r];
                part.a.data += (ptrdiff_t)m_cuts[r] * g.a.row;
                part.c += m_cuts[r] * g.c_row;
                tctl_gemm(&part);
            }
        }
        assert_memory_equal(p.c, p.expected, p.m * p.ldc * sizeof *p.c);
        free(packed);
        free_problem(&p);
    }
}

/* Blocks of rows, columns and k, their edges, and threads. */
static void large_products_over_a_pool_are_the_same_chains(void **state)
{
    (void)state;
    static const size_t large[][3] = {
        {1, 1, 0}, {13, 2071, 300}, {487, 35, 515}, {3, 40, 1025}, {100, 16, 7}};
    uint32_t n;
    const tctl_simd *const *simd = tctl_simd_available(&n);
    for (uint32_t v = 0; v < n; v++) {
        for (size_t s = 0; s < sizeof large / sizeof large[0]; s++) {
            for (uint32_t cut = 0; cut < 4; cut++) {
                problem p = make_problem(large[s][0], large[s][1], large[s][2], cut & 1, cut & 2);
                const tctl_gemm_start start = (tctl_gemm_start)(cut % 3);
                tctl_gemm_call g = call_of(&p, simd[v], start);
                tctl_pool *pool = NULL;
                assert_int_equal(tctl_pool_create(cut + 1, &pool, NULL), TCTL_OK);
                g.scratch = random_floats(tctl_gemm_run_floats(simd[v], cut + 1), 5);
                naive(&p, start);
                tctl_gemm_run(&g, pool);
                assert_memory_equal(p.c, p.expected, p.m * p.ldc * sizeof *p.c);
                free(g.scratch);
                tctl_pool_destroy(pool);
                free_problem(&p);
            }
        }
    }
}

/* The padding of edge tiles is thrown away: not-a-number in A does not spread to other rows or columns. */
static void not_a_number_stays_in_its_row(void **state)
{
    (void)state;
    uint32_t n;
    const tctl_simd *const *simd = tctl_simd_available(&n);
    for (uint32_t v = 0; v < n; v++) {
        problem p = make_problem(7, 19, 33, false, false);
        float *scratch = random_floats(tctl_gemm_scratch_floats(simd[v]), 5);
        p.a[2 * p.lda + 5] = NAN;
        tctl_gemm_call g = call_of(&p, simd[v], TCTL_GEMM_ZERO);
        g.scratch = scratch;
        tctl_gemm(&g);
        for (size_t i = 0; i < p.m; i++) {
            for (size_t j = 0; j < p.n; j++)
                assert_int_equal(isnan(p.c[i * p.ldc + j]) != 0, i == 2);
        }
        free(scratch);
        free_problem(&p);
    }
}

static void unknown_variants_are_refused_with_those_there_are(void **state)
{
    (void)state;
    tctl_error err = {0};
    const tctl_simd *simd = NULL;
    assert_int_equal(tctl_simd_choose("mmx", &simd, &err), TCTL_EINVAL);
    assert_non_null(strstr(err.message, "no SIMD variant 'mmx' on this processor; it can run: "));
    assert_non_null(strstr(err.message, "portable"));
    assert_int_equal(tctl_simd_choose("portable", &simd, &err), TCTL_OK);
    assert_string_equal(simd->name, "portable");
    assert_int_equal(tctl_simd_choose(NULL, &simd, &err), TCTL_OK);
    uint32_t n;
    assert_ptr_equal(simd, tctl_simd_available(&n)[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variant_is_one_chain_per_element),
        cmocka_unit_test(cutting_the_work_does_not_show),
        cmocka_unit_test(large_products_over_a_pool_are_the_same_chains),
        cmocka_unit_test(not_a_number_stays_in_its_row),
        cmocka_unit_test(unknown_variants_are_refused_with_those_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
