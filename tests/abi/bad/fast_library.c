/* SPDX-License-Identifier: Apache-2.0 */
/* No plugin: a library that changes the rounding direction when it is loaded. */
#include <fenv.h>

__attribute__((visibility("default"))) int fast_library_answer(void);

__attribute__((constructor)) static void round_down(void)
{
    (void)fesetround(FE_DOWNWARD);
}

int fast_library_answer(void)
{
    return 42;
}
