/* SPDX-License-Identifier: Apache-2.0 */
/* A library that does nothing but be there. */
int plain_answer(void);

__attribute__((visibility("default"))) int plain_answer(void)
{
    return 42;
}
