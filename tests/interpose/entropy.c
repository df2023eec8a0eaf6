/* SPDX-License-Identifier: Apache-2.0 */
/* entropy HOW [BYTES]: bytes of the kernel's entropy in hex (a checksum of them, if they are many). */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

static int show(const unsigned char *bytes, size_t size)
{
    uint64_t sum = 14695981039346656037u, zeros = 0;
    if (size <= 16) {
        for (size_t i = 0; i < size; i++)
            printf("%02x", bytes[i]);
        putchar('\n');
        return 0;
    }
    for (size_t i = 0; i < size; i++) {
        sum = (sum ^ bytes[i]) * 1099511628211u;
        zeros += bytes[i] == 0;
    }
    printf("%zu %016llx %s\n", size, (unsigned long long)sum, zeros < size / 64 ? "mixed" : "zeros");
    return 0;
}

static size_t read_all(int fd, unsigned char *bytes, size_t size)
{
    size_t have = 0;
    for (ssize_t n; have < size && (n = read(fd, bytes + have, size - have)) > 0;)
        have += (size_t)n;
    return have;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    const char *how = argv[1];
    size_t size = argc > 2 ? strtoul(argv[2], NULL, 10) : 8, have = 0;
    unsigned char *bytes = calloc(1, size + 1);
    if (bytes == NULL)
        return 1;
    if (strcmp(how, "getrandom") == 0) {
        ssize_t n = getrandom(bytes, size, 0);
        have = n < 0 ? 0 : (size_t)n;
    } else if (strcmp(how, "getentropy") == 0) {
        have = getentropy(bytes, size) == 0 ? size : 0;
    } else if (strcmp(how, "urandom") == 0 || strcmp(how, "random") == 0) {
        int fd = open(how[0] == 'u' ? "/dev/urandom" : "/dev/random", O_RDONLY | O_CLOEXEC);
        have = read_all(fd, bytes, size);
        close(fd);
    } else if (strcmp(how, "stdio") == 0) {
        FILE *file = fopen("/dev/urandom", "rbe");
        have = file == NULL ? 0 : fread(bytes, 1, size, file);
        if (file != NULL)
            fclose(file);
    } else if (strcmp(how, "stdin") == 0) {
        have = read_all(STDIN_FILENO, bytes, size);
    } else if (strcmp(how, "forks") == 0) { /* parent and two children, each its own */
        for (int i = 0; i < 2; i++) {
            pid_t pid = fork();
            if (pid == 0) {
                if (getrandom(bytes, size, 0) > 0)
                    show(bytes, size);
                return 0;
            }
            waitpid(pid, NULL, 0);
        }
        have = getrandom(bytes, size, 0) > 0 ? size : 0;
    }
    int status = have == size ? show(bytes, size) : 1;
    free(bytes);
    return status;
}
