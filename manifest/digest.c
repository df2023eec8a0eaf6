/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See digest.h. The algorithm is fetched once per hasher: OpenSSL 3 looks it up by name at every use otherwise,
 * which costs more than hashing a small file.
 *
 * Once a context has been set up, OpenSSL's SHA-256 can't fail; where its interface says that it did, the
 * process stops rather than go on with a digest that is wrong.
 */
#include "manifest/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { READ_BYTES = 256 * 1024 };

struct tctl_hasher {
    EVP_MD *algorithm;
    EVP_MD_CTX *context;
};

tctl_status tctl_hasher_create(tctl_hasher **ret, tctl_error *err)
{
    tctl_hasher *h = calloc(1, sizeof *h);
    if (!h)
        return tctl_fail_memory(err, sizeof *h);
    h->algorithm = EVP_MD_fetch(NULL, "SHA2-256", NULL);
    h->context = EVP_MD_CTX_new();
    if (!h->algorithm || !h->context || EVP_DigestInit_ex2(h->context, h->algorithm, NULL) != 1) {
        tctl_hasher_destroy(h);
        return tctl_fail(err, TCTL_EUNSUPPORTED,
                         "OpenSSL gives no SHA-256 here; is its configuration broken?");
    }
    *ret = h;
    return TCTL_OK;
}

void tctl_hasher_destroy(tctl_hasher *h)
{
    if (!h)
        return;
    EVP_MD_CTX_free(h->context);
    EVP_MD_free(h->algorithm);
    free(h);
}

void tctl_hasher_add(tctl_hasher *h, const void *data, size_t size)
{
    TCTL_BUG_IF(EVP_DigestUpdate(h->context, data, size) != 1);
}

tctl_sha256 tctl_hasher_finish(tctl_hasher *h)
{
    tctl_sha256 digest;
    TCTL_BUG_IF(EVP_DigestFinal_ex(h->context, digest.bytes, NULL) != 1);
    TCTL_BUG_IF(EVP_DigestInit_ex2(h->context, NULL, NULL) != 1);
    return digest;
}

tctl_sha256 tctl_sha256_of(const void *data, size_t size)
{
    tctl_sha256 digest;
    TCTL_BUG_IF(EVP_Digest(data, size, digest.bytes, NULL, EVP_sha256(), NULL) != 1);
    return digest;
}

void tctl_sha256_hex(const tctl_sha256 *digest, char out[TCTL_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof digest->bytes; i++) {
        out[2 * i] = digits[digest->bytes[i] >> 4];
        out[2 * i + 1] = digits[digest->bytes[i] & 15];
    }
    out[TCTL_SHA256_HEX - 1] = '\0';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool tctl_sha256_parse(const char *hex, tctl_sha256 *ret)
{
    tctl_sha256 digest = {{0}};
    if (strlen(hex) != TCTL_SHA256_HEX - 1)
        return false;
    for (size_t i = 0; i < sizeof digest.bytes; i++) {
        int high = hex_value(hex[2 * i]), low = hex_value(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        digest.bytes[i] = (uint8_t)(high * 16 + low);
    }
    *ret = digest;
    return true;
}

bool tctl_sha256_equal(const tctl_sha256 *a, const tctl_sha256 *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

tctl_status tctl_hasher_add_fd(tctl_hasher *h, int fd, const char *name, void *scratch, size_t scratch_size,
                               uint64_t *ret_size, tctl_error *err)
{
    uint64_t size = 0;
    for (;;) {
        ssize_t n = read(fd, scratch, scratch_size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tctl_fail_errno(err, errno, "cannot read '%s'", name);
        if (n == 0)
            break;
        tctl_hasher_add(h, scratch, (size_t)n);
        size += (uint64_t)n;
    }
    *ret_size = size;
    return TCTL_OK;
}

tctl_status tctl_sha256_fd(int fd, const char *name, tctl_sha256 *ret, uint64_t *ret_size, tctl_error *err)
{
    tctl_hasher *h = NULL;
    uint64_t size = 0;
    void *scratch = malloc(READ_BYTES);
    if (!scratch)
        return tctl_fail_memory(err, READ_BYTES);
    tctl_status status = tctl_hasher_create(&h, err);
    if (status == TCTL_OK)
        status = tctl_hasher_add_fd(h, fd, name, scratch, READ_BYTES, &size, err);
    if (status == TCTL_OK) {
        *ret = tctl_hasher_finish(h);
        if (ret_size)
            *ret_size = size;
    }
    tctl_hasher_destroy(h);
    free(scratch);
    return status;
}

tctl_status tctl_sha256_file(const char *path, tctl_sha256 *ret, uint64_t *ret_size, tctl_error *err)
{
    /* Non-blocking, so that a FIFO is refused instead of waited for. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return tctl_fail_errno(err, errno, "cannot open '%s'", path);
    struct stat st;
    tctl_status status;
    if (fstat(fd, &st) != 0)
        status = tctl_fail_errno(err, errno, "cannot read '%s'", path);
    else if (!S_ISREG(st.st_mode))
        status = tctl_fail(err, TCTL_EINVAL, "cannot hash '%s': not a regular file", path);
    else
        status = tctl_sha256_fd(fd, path, ret, ret_size, err);
    close(fd);
    return status;
}

tctl_trace_value tctl_xxh128(const void *data, size_t size)
{
    XXH128_hash_t h = XXH3_128bits(data, size);
    return (tctl_trace_value){h.low64, h.high64};
}
