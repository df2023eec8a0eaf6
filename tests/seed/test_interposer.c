/* SPDX-License-Identifier: Apache-2.0 */
/* The interposer's own copies of things that the tree has elsewhere give the same bits; its sort gives qsort's order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "seed/interpose/directory_sort.h"
#include "seed/interpose/interpose.h"
#include "seed/interpose/sha256.h"
#include "seed/stream.h"

tctl_process tctl_this; /* process.c's, of which only the seed and the id matter here */

static void sha256_of_abc_is_the_standards(void **state)
{
    (void)state;
    static const uint8_t first[] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea};
    uint8_t digest[32];
    tctl_short_sha256("abc", 3, digest);
    assert_memory_equal(digest, first, sizeof first);
}

static void names_hash_as_in_the_seed_room(void **state)
{
    (void)state;
    char name[TCTL_SHORT_SHA256_LIMIT] = "";
    for (size_t n = 0; n < 200; n++) { /* across the sizes at which SHA-256 needs another block */
        memset(name, 'x', n);
        name[n] = '\0';
        uint64_t ours = tctl_name_hash("trainctl-foreign 1", 1029 + n, name);
        assert_true(ours == tctl_foreign_seed(1029 + n, name));
    }
    tctl_this.seed = 7;
    assert_true(tctl_libc_seed("rand") == tctl_foreign_seed(7, "libc.rand"));
}

static void bytes_of_a_stream_are_its_words(void **state)
{
    (void)state;
    enum { WORDS = 70 };
    uint32_t words[WORDS];
    uint8_t bytes[4 * WORDS], piece[9];
    tctl_random_address stream = tctl_stream(7, "libc.entropy", 0, 0);
    tctl_fill_bits(&stream, 0, WORDS, words);
    uint64_t key = tctl_name_hash("trainctl-stream 1", 7, "libc.entropy");
    tctl_stream_bytes(key, 0, bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        assert_int_equal(bytes[i], words[i / 4] >> (8 * (i % 4)) & 255);
    for (size_t at = 0; at + sizeof piece < sizeof bytes; at++) {
        tctl_stream_bytes(key, at, piece, sizeof piece);
        assert_memory_equal(piece, bytes + at, sizeof piece);
    }
}

/* ---- sorting -------------------------------------------------------------------------------------------- */

enum { ROOM = 300, MOST = 6000 };

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Names of one of several shapes; the shape decides what they have in common. */
static void make_name(tctl_random_address *stream, uint64_t i, unsigned shape, char ret[ROOM])
{
    stream->index = i;
    uint32_t r = tctl_draw_bits(stream, 0), q = tctl_draw_bits(stream, 1);
    if (shape == 0)
        snprintf(ret, ROOM, "image-%06u.png", r % 100000);
    else if (shape == 1)
        snprintf(ret, ROOM, "%x", r % 64); /* many that are equal */
    else if (shape == 2)
        snprintf(ret, ROOM, "%0*u", (int)(1 + r % 250), q % 10); /* all lengths */
    else if (shape == 3)
        snprintf(ret, ROOM, "%c%c%c", (char)(1 + r % 255), (char)(1 + q % 255), (char)(1 + (r >> 8) % 255));
    else
        snprintf(ret, ROOM, "a-long-common-prefix-%u-and-a-long-infix-that-is-common-as-well-%u", r % 3,
                 q % 500);
}

static void names_are_in_the_order_of_strcmp(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 24, 25, 100, 600, MOST};
    char *bytes = malloc((size_t)MOST * ROOM + TCTL_SORT_SLACK), *expected = malloc((size_t)MOST * ROOM);
    tctl_sort_item *items = calloc(MOST, sizeof *items);
    assert_true(bytes != NULL && expected != NULL && items != NULL);
    for (unsigned shape = 0; shape < 5; shape++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            tctl_random_address stream = tctl_stream(shape, "names", (uint32_t)s, 0);
            size_t n = sizes[s];
            memset(bytes, '~', (size_t)MOST * ROOM + TCTL_SORT_SLACK);
            for (size_t i = 0; i < n; i++) {
                make_name(&stream, i, shape, bytes + i * ROOM);
                memcpy(expected + i * ROOM, bytes + i * ROOM, ROOM);
                items[i].at = i * ROOM;
            }
            qsort(expected, n, ROOM, by_text);
            assert_true(tctl_sort_names(bytes, 0, items, n));
            for (size_t i = 0; i < n; i++)
                assert_string_equal(bytes + items[i].at, expected + i * ROOM);
        }
    }
    free(bytes);
    free(expected);
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_of_abc_is_the_standards),
        cmocka_unit_test(names_hash_as_in_the_seed_room),
        cmocka_unit_test(bytes_of_a_stream_are_its_words),
        cmocka_unit_test(names_are_in_the_order_of_strcmp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
