/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debian's libgit2 reads every certificate of the machine when it starts: 5 ms of processor time, a quarter of what
 * `trainctl run` needs for all else. We look at repositories on the disk and never open a connection.
 *
 * A function of the executable comes before a library's of the same name, so that libgit2's start finds this one, is
 * told that there is nothing to read, and goes on without certificates, which it is prepared for. With another TLS
 * library in libgit2 nobody calls it. If a connection were ever opened, it would be refused, not trusted.
 */
#include "manifest/code_internal.h"

enum { NOTHING_READ = -0x3E00 }; /* as if the file could not be opened: MBEDTLS_ERR_PK_FILE_IO_ERROR */

int mbedtls_x509_crt_parse_file(void *chain, const char *path);

__attribute__((visibility("default"))) int mbedtls_x509_crt_parse_file(void *chain, const char *path)
{
    (void)chain;
    (void)path;
    return NOTHING_READ;
}

/* Whoever starts libgit2 calls this, so that the linker takes this file along. */
int tctl_git_start(void)
{
    return git_libgit2_init();
}
