/* SPDX-License-Identifier: Apache-2.0 */
/* Which micro-kernels this processor can run. The answer decides the time, never the bits. */
#include <string.h>

#include "base/buf.h"
#include "engine/gemm/tile.h"

#if defined(__x86_64__)

/* Indexed by (AVX-512, AVX2): no list is built at run time. The compiler's runtime also asks the operating system
 * whether it saves the wide registers. */
static const tctl_simd *const with_avx512[] = {&tctl_simd_avx512, &tctl_simd_avx2, &tctl_simd_portable};
static const tctl_simd *const with_avx2[] = {&tctl_simd_avx2, &tctl_simd_portable};
static const tctl_simd *const with_nothing[] = {&tctl_simd_portable};

const tctl_simd *const *tctl_simd_available(uint32_t *ret_n)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        *ret_n = TCTL_COUNT_OF(with_nothing);
        return with_nothing;
    }
    if (!__builtin_cpu_supports("avx512f")) {
        *ret_n = TCTL_COUNT_OF(with_avx2);
        return with_avx2;
    }
    *ret_n = TCTL_COUNT_OF(with_avx512);
    return with_avx512;
}

#else

static const tctl_simd *const variants[] = {
#if defined(__aarch64__)
    &tctl_simd_neon,
#endif
    &tctl_simd_portable};

const tctl_simd *const *tctl_simd_available(uint32_t *ret_n)
{
    *ret_n = TCTL_COUNT_OF(variants);
    return variants;
}

#endif

tctl_status tctl_simd_choose(const char *name, const tctl_simd **ret, tctl_error *err)
{
    uint32_t n;
    const tctl_simd *const *available = tctl_simd_available(&n);
    if (!name || !*name) {
        *ret = available[0];
        return TCTL_OK;
    }
    tctl_buf names = TCTL_BUF_INIT;
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(name, available[i]->name) == 0) {
            tctl_buf_release(&names);
            *ret = available[i];
            return TCTL_OK;
        }
        tctl_buf_add_format(&names, i ? ", %s" : "%s", available[i]->name);
    }
    const char *text = tctl_buf_text(&names);
    tctl_status st = tctl_fail(err, TCTL_EINVAL, "no SIMD variant '%s' on this processor; it can run: %s",
                               name, text ? text : available[0]->name);
    tctl_buf_release(&names);
    return st;
}
