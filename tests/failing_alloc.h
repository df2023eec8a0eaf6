/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the n-th allocation of the code under test fail. The test is linked with TCTL_WRAP_ALLOC (tests/CMakeLists.txt),
 * so that calls from our own libraries come here and libc's and cmocka's own do not.
 *
 * FOR_EACH_FAILURE(body): runs the body with allocation 1 failing, then with 2, ..., until none failed any more.
 */
#ifndef TCTL_TESTS_FAILING_ALLOC_H
#define TCTL_TESTS_FAILING_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *text);

static long alloc_fails_in; /* 0: never */
static bool alloc_failed;

static bool fails_now(void)
{
    if (alloc_fails_in == 0 || --alloc_fails_in > 0)
        return false;
    alloc_failed = true;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails_now() ? NULL : __real_realloc(p, size);
}

char *__wrap_strdup(const char *text)
{
    return fails_now() ? NULL : __real_strdup(text);
}

#define FOR_EACH_FAILURE(body)                                                                               \
    for (long failing_ = 1;; failing_++) {                                                                   \
        alloc_fails_in = failing_;                                                                           \
        alloc_failed = false;                                                                                \
        body;                                                                                                \
        alloc_fails_in = 0;                                                                                  \
        if (!alloc_failed)                                                                                   \
            break;                                                                                           \
        assert_true(failing_ < 10000);                                                                       \
    }

#endif
