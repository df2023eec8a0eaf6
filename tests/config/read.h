/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of config/: text in, rendered diagnostics out. */
#ifndef TESTS_CONFIG_READ_H
#define TESTS_CONFIG_READ_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/yaml.h"

/* What the parser says about a text; "" if nothing. Free the result. */
static inline char *yaml_says(const char *text, size_t size)
{
    tctl_arena *arena = tctl_arena_create();
    tctl_diags diags = {0};
    tctl_buf out = TCTL_BUF_INIT;
    tctl_yaml_node *root = NULL;
    tctl_status status = tctl_yaml_parse(arena, "t.yaml", text, size, &root, &diags);
    assert_int_equal(status, tctl_diags_count(&diags) ? TCTL_ESPEC : TCTL_OK);
    tctl_diags_render(&diags, text, size, false, &out);
    tctl_diags_release(&diags);
    tctl_arena_destroy(arena);
    char *said_ = tctl_buf_detach(&out);
    assert_non_null(said_);
    return said_;
}

/* The whole output, to the letter. */
#define assert_says(text, golden)                                                                            \
    do {                                                                                                     \
        char *said_ = yaml_says(text, strlen(text));                                                         \
        assert_string_equal(said_, golden);                                                                  \
        free(said_);                                                                                         \
    } while (0)

static inline void check_begins(const char *said_, const char *beginning, const char *file, int line)
{
    if (strncmp(said_, beginning, strlen(beginning)) != 0) {
        print_error("%s:%d: got\n%sinstead of\n%s\n", file, line, said_, beginning);
        fail();
    }
}

/* The beginning of the output: place and message of the first error. */
#define assert_first(text, beginning)                                                                        \
    do {                                                                                                     \
        char *said_ = yaml_says(text, strlen(text));                                                         \
        check_begins(said_, beginning, __FILE__, __LINE__);                                                  \
        free(said_);                                                                                         \
    } while (0)

#endif
