/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doctor's look at the program that a spec's command begins with: whether the interposer can act in it, and which
 * Python and PyTorch it is. Files are looked at; nothing is run, so that a program behind a shell's function, a
 * variable or another program stays unknown, and that is said.
 */
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "launcher/doctor.h"

#define OLDEST_PYTHON 9 /* of 3.x: what the shim is tested with */
#define NEWEST_PYTHON 13
#define MAX_HEADERS   256

/* ---- finding it ------------------------------------------------------------------------------------------- */

static bool is_assignment(const char *word, size_t length)
{
    const char *equals = memchr(word, '=', length);
    return equals != NULL && equals != word && memchr(word, '/', (size_t)(equals - word)) == NULL;
}

/* The first word that names a program: behind assignments and 'exec' or 'env'. NULL if a shell must tell. */
static const char *first_word(tctl_arena *arena, const char *command)
{
    static const char blanks[] = " \t\n", ends[] = " \t\n;|&<>()";
    for (;;) {
        command += strspn(command, blanks);
        size_t length = strcspn(command, ends);
        if (length == 0 || memchr(command, '$', length) != NULL || strchr("'\"`{!#", *command) != NULL)
            return NULL;
        bool skip = is_assignment(command, length) || (length == 4 && memcmp(command, "exec", 4) == 0) ||
                    (length == 3 && memcmp(command, "env", 3) == 0);
        if (!skip)
            return tctl_arena_copy(arena, command, length);
        command += length;
    }
}

/* As the shell would find it from the spec's folder; NULL if there is no such file. */
static const char *find_program(const tctl_doctor *d, const char *word)
{
    const char *path = getenv("PATH");
    if (strchr(word, '/') != NULL) {
        const char *whole = *word == '/' ? word : tctl_path_join(d->arena, d->folder, word);
        return whole != NULL && access(whole, X_OK) == 0 ? whole : NULL;
    }
    while (path != NULL && *path != '\0') {
        size_t length = strcspn(path, ":");
        const char *whole = tctl_arena_format(d->arena, "%.*s/%s", (int)length, path, word);
        if (whole != NULL && access(whole, X_OK) == 0)
            return whole;
        path += length + (path[length] == ':');
    }
    return NULL;
}

/* ---- what it is ------------------------------------------------------------------------------------------- */

enum { NOT_KNOWN, STATIC, DYNAMIC, SCRIPT };

/* Linked statically: an ELF program (64 bit, this byte order) without an interpreter. */
static int kind_of(const char *path)
{
    Elf64_Ehdr head;
    int kind = NOT_KNOWN, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : pread(fd, &head, sizeof head, 0);
    if (n >= 2 && memcmp(&head, "#!", 2) == 0) {
        kind = SCRIPT;
    } else if (n == (ssize_t)sizeof head && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
               head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_phentsize == sizeof(Elf64_Phdr)) {
        kind = STATIC;
        for (unsigned i = 0; i < head.e_phnum && i < MAX_HEADERS; i++) {
            Elf64_Phdr program;
            off_t at = (off_t)(head.e_phoff + i * sizeof program);
            if (at >= 0 && pread(fd, &program, sizeof program, at) == (ssize_t)sizeof program &&
                program.p_type == PT_INTERP)
                kind = DYNAMIC;
        }
    }
    if (fd >= 0)
        close(fd);
    return kind;
}

static void check_linking(tctl_doctor *d, const char *word, const char *path)
{
    struct stat st;
    bool privileged = stat(path, &st) == 0 && (st.st_mode & (S_ISUID | S_ISGID)) != 0;
    int kind = kind_of(path);
    if (privileged)
        tctl_doctor_add(d, "program", TCTL_CONTRACT_MACHINE, true, "run a copy without the bit",
                        "'%s' is set-uid or set-gid: the interposer is not loaded into it", word);
    else if (kind == STATIC)
        tctl_doctor_add(d, "program", TCTL_CONTRACT_MACHINE, true, "link it dynamically",
                        "'%s' is linked statically: the interposer can't act in it", word);
    else
        tctl_doctor_add(d, "program", TCTL_CONTRACT_MACHINE, false, NULL, "'%s' is %s%s", word, path,
                        kind == SCRIPT ? ", a script" : "");
}

/* ---- Python ----------------------------------------------------------------------------------------------- */

/* The version of a distribution among the packages of a folder ("torch-2.1.0.dist-info"), or NULL. */
static const char *version_in(tctl_arena *arena, const char *folder, const char *distribution)
{
    DIR *dir = folder == NULL ? NULL : opendir(folder);
    const struct dirent *entry;
    size_t length = strlen(distribution);
    const char *version = NULL;
    while (dir != NULL && version == NULL && (entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name, *end = strstr(name, ".dist-info");
        if (end == NULL)
            end = strstr(name, ".egg-info");
        if (end != NULL && strncmp(name, distribution, length) == 0 && name[length] == '-' &&
            end > name + length)
            version = tctl_arena_copy(arena, name + length + 1, (size_t)(end - name) - length - 1);
    }
    if (dir != NULL)
        closedir(dir);
    return version;
}

static const char *torch_version(tctl_arena *arena, const char *path, const char *real, uint64_t minor)
{
    const char *own = tctl_path_folder(arena, tctl_path_folder(arena, path));
    const char *base = tctl_path_folder(arena, tctl_path_folder(arena, real));
    const char *folders[] = {
        tctl_arena_format(arena, "%s/lib/python3.%u/site-packages", own, (unsigned)minor),
        tctl_arena_format(arena, "%s/lib/python3.%u/site-packages", base, (unsigned)minor),
        tctl_arena_format(arena, "%s/local/lib/python3.%u/dist-packages", base, (unsigned)minor),
        tctl_arena_format(arena, "%s/lib/python3/dist-packages", base),
    };
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const char *version = version_in(arena, folders[i], "torch");
        if (version != NULL)
            return version;
    }
    return NULL;
}

static void check_torch(tctl_doctor *d, const char *version)
{
    uint64_t major = 0, minor = 0;
    size_t length = strcspn(version, ".");
    const char *rest = version[length] == '.' ? version + length + 1 : version + length;
    bool read =
        tctl_parse_uint(version, length, &major) && tctl_parse_uint(rest, strspn(rest, "0123456789"), &minor);
    if (read && (major == 2 || (major == 1 && minor >= 13)))
        tctl_doctor_add(d, "torch", TCTL_CONTRACT_MACHINE, false, NULL, "%s", version);
    else
        tctl_doctor_add(d, "torch", TCTL_CONTRACT_MACHINE, true, "1.13 to 2.x are known",
                        "%s: some of its flags may not be known; the manifest says which", version);
}

/* A program whose file is called python3.N. */
static void check_python(tctl_doctor *d, const char *path)
{
    char *real = realpath(path, NULL);
    const char *name = real == NULL ? "" : strrchr(real, '/') + 1;
    uint64_t minor = 0;
    if (strncmp(name, "python3.", 8) == 0 &&
        tctl_parse_uint(name + 8, strspn(name + 8, "0123456789"), &minor)) {
        bool known = minor >= OLDEST_PYTHON && minor <= NEWEST_PYTHON;
        tctl_doctor_add(d, "python", TCTL_CONTRACT_MACHINE, !known,
                        known ? NULL : "the shim is tested with 3.9 to 3.13",
                        known ? "3.%u" : "3.%u: the shim may not reach all of it; the manifest says what",
                        (unsigned)minor);
        const char *torch = torch_version(d->arena, path, real, minor);
        if (torch != NULL)
            check_torch(d, torch);
    }
    free(real);
}

void tctl_doctor_program(tctl_doctor *d)
{
    if (d->spec == NULL || d->spec->command == NULL)
        return;
    const char *word = first_word(d->arena, d->spec->command);
    const char *path = word == NULL ? NULL : find_program(d, word);
    if (path == NULL) {
        tctl_doctor_add(d, "program", TCTL_CONTRACT_MACHINE, false, NULL,
                        word == NULL ? "the shell decides which%s"
                                     : "'%s' is no file: the shell's own, or not there",
                        word == NULL ? "" : word);
        return;
    }
    check_linking(d, word, path);
    check_python(d, path);
}
