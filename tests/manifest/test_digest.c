/* SPDX-License-Identifier: Apache-2.0 */
/* Digests: the published vectors, files of every kind. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "manifest/digest.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ABC   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static char folder[] = "/tmp/tctl-digest-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return tctl_remove_tree(folder, NULL);
}

static const char *at(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void assert_hex(tctl_sha256 digest, const char *expected)
{
    char hex[TCTL_SHA256_HEX];
    tctl_sha256_hex(&digest, hex);
    assert_string_equal(hex, expected);
}

/* FIPS 180-4's examples, and the million of 'a' that goes with them. */
static void sha256_gives_the_published_vectors(void **state)
{
    (void)state;
    assert_hex(tctl_sha256_of("", 0), EMPTY);
    assert_hex(tctl_sha256_of("abc", 3), ABC);
    tctl_hasher *h = NULL;
    assert_int_equal(tctl_hasher_create(&h, NULL), TCTL_OK);
    char block[1000];
    memset(block, 'a', sizeof block);
    for (int i = 0; i < 1000; i++)
        tctl_hasher_add(h, block, sizeof block);
    assert_hex(tctl_hasher_finish(h), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    /* Finishing starts over. */
    assert_hex(tctl_hasher_finish(h), EMPTY);
    tctl_hasher_add(h, "ab", 2);
    tctl_hasher_add(h, "c", 1);
    assert_hex(tctl_hasher_finish(h), ABC);
    tctl_hasher_destroy(h);
    tctl_hasher_destroy(NULL);
}

static void hex_is_read_strictly(void **state)
{
    (void)state;
    tctl_sha256 digest = {{0}}, same = tctl_sha256_of("abc", 3);
    assert_true(tctl_sha256_parse(ABC, &digest));
    assert_true(tctl_sha256_equal(&digest, &same));
    same.bytes[31] ^= 1;
    assert_false(tctl_sha256_equal(&digest, &same));
    char bad[70];
    snprintf(bad, sizeof bad, "%s", ABC);
    bad[0] = 'B'; /* upper case */
    assert_false(tctl_sha256_parse(bad, &digest));
    bad[0] = 'g';
    assert_false(tctl_sha256_parse(bad, &digest));
    assert_false(tctl_sha256_parse(ABC "0", &digest));
    assert_false(tctl_sha256_parse("", &digest));
    bad[0] = 'b';
    bad[63] = '\0';
    assert_false(tctl_sha256_parse(bad, &digest));
}

static void files_are_hashed_whole(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 3, 256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 1000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *data = calloc(1, sizes[i] + 1);
        for (size_t k = 0; k < sizes[i]; k++)
            data[k] = (char)(k * 7 + k / 251);
        assert_int_equal(tctl_file_replace(at("f"), data, sizes[i], 0600, NULL), TCTL_OK);
        tctl_sha256 expected = tctl_sha256_of(data, sizes[i]), digest;
        uint64_t size = 99;
        assert_int_equal(tctl_sha256_file(at("f"), &digest, &size, NULL), TCTL_OK);
        assert_true(tctl_sha256_equal(&digest, &expected));
        assert_int_equal(size, sizes[i]);
        free(data);
    }
}

static void a_descriptor_is_hashed_from_where_it_stands(void **state)
{
    (void)state;
    assert_int_equal(tctl_file_replace(at("f"), "xxabc", 5, 0600, NULL), TCTL_OK);
    int fd = open(at("f"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(lseek(fd, 2, SEEK_SET), 2);
    tctl_sha256 digest;
    uint64_t size = 0;
    assert_int_equal(tctl_sha256_fd(fd, "f", &digest, &size, NULL), TCTL_OK);
    assert_hex(digest, ABC);
    assert_int_equal(size, 3);
    close(fd);
}

static void what_is_no_readable_file_is_refused_by_name(void **state)
{
    (void)state;
    tctl_sha256 digest;
    tctl_error err = {0};
    assert_int_equal(tctl_sha256_file(at("missing"), &digest, NULL, &err), TCTL_ENOENT);
    assert_non_null(strstr(err.message, "missing': No such file or directory"));
    assert_int_equal(tctl_sha256_file(folder, &digest, NULL, &err), TCTL_EINVAL);
    assert_non_null(strstr(err.message, "not a regular file"));
    assert_int_equal(mkfifo(at("fifo"), 0600), 0);
    assert_int_equal(tctl_sha256_file(at("fifo"), &digest, NULL, &err), TCTL_EINVAL);
    assert_non_null(strstr(err.message, "fifo': not a regular file"));
    int fd = open(folder, O_RDONLY | O_CLOEXEC);
    assert_int_equal(tctl_sha256_fd(fd, "d", &digest, NULL, &err), TCTL_EIO);
    assert_string_equal(err.message, "cannot read 'd': Is a directory");
    close(fd);
}

/* XXH3's own sanity vectors: the empty input with seed 0. */
static void xxh128_gives_the_published_value_of_nothing(void **state)
{
    (void)state;
    tctl_trace_value v = tctl_xxh128("", 0);
    assert_true(v.lo == 0x6001c324468d497fu);
    assert_true(v.hi == 0x99aa06d3014798d8u);
    tctl_trace_value a = tctl_xxh128("a", 1), b = tctl_xxh128("b", 1);
    assert_true(a.lo != b.lo && a.hi != b.hi);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_gives_the_published_vectors),
        cmocka_unit_test(hex_is_read_strictly),
        cmocka_unit_test(files_are_hashed_whole),
        cmocka_unit_test(a_descriptor_is_hashed_from_where_it_stands),
        cmocka_unit_test(what_is_no_readable_file_is_refused_by_name),
        cmocka_unit_test(xxh128_gives_the_published_value_of_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
