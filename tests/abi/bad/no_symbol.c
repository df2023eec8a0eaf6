/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that is no plugin, and that ends the process of whoever loads it. */
#include <stdlib.h>

__attribute__((constructor)) static void die(void)
{
    abort();
}
