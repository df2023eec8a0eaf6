/* SPDX-License-Identifier: Apache-2.0 */
/* A library that leaves another rounding mode behind. */
#include <fenv.h>

__attribute__((constructor)) static void round_up(void)
{
    fesetround(FE_UPWARD);
}
