/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target once over every file of the folders that are named: what libFuzzer's own main does with
 * a corpus, for compilers that have no libFuzzer. Fails if there was no file to try.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_LIMIT = 1 << 24 };

static int try_file(const char *path)
{
    tctl_buf bytes = TCTL_BUF_INIT;
    tctl_error err;
    if (tctl_file_read(path, INPUT_LIMIT, &bytes, &err) != TCTL_OK) {
        fprintf(stderr, "%s\n", err.message);
        tctl_buf_release(&bytes);
        return 0;
    }
    /* A copy of exactly the right size, so that a sanitizer sees a read past the end. */
    uint8_t *exact = malloc(bytes.size ? bytes.size : 1);
    if (exact) {
        if (bytes.size)
            memcpy(exact, bytes.data, bytes.size);
        LLVMFuzzerTestOneInput(exact, bytes.size);
    }
    free(exact);
    tctl_buf_release(&bytes);
    return 1;
}

static int try_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    int n = 0;
    if (!dir) {
        perror(folder);
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        n += try_file(path);
    }
    closedir(dir);
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++)
        n += try_folder(argv[i]);
    printf("%d inputs\n", n);
    return n > 0 ? 0 : 1;
}
