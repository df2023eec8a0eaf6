/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an executable file is, so far as it matters to a library that wants to be loaded into it.
 *
 * Foreign bytes: every offset is checked against what pread gives. Nothing is allocated, no lock is taken: this runs
 * between vfork and exec.
 */
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seed/interpose/interpose.h"

enum { MAX_HEADERS = 64, HEAD = 256, SCRIPTS = 4 };

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#define OUR_MACHINE EM_NONE
#endif

typedef struct image {
    int fd;
    Elf64_Phdr headers[MAX_HEADERS];
    size_t n;
} image;

static bool read_at(int fd, uint64_t offset, void *ret, size_t size)
{
    return offset <= INT64_MAX && syscall(SYS_pread64, fd, ret, size, (long)offset) == (long)size;
}

static const Elf64_Phdr *segment(const image *im, uint32_t type)
{
    for (size_t i = 0; i < im->n; i++) {
        if (im->headers[i].p_type == type)
            return &im->headers[i];
    }
    return NULL;
}

static uint64_t offset_of(const image *im, uint64_t address)
{
    for (size_t i = 0; i < im->n; i++) {
        const Elf64_Phdr *p = &im->headers[i];
        if (p->p_type == PT_LOAD && address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz)
            return p->p_offset + (address - p->p_vaddr);
    }
    return UINT64_MAX;
}

/* True if one of the libraries that it is linked with has a name that begins like this. */
static bool needs(const image *im, const char *prefix)
{
    const Elf64_Phdr *dynamic = segment(im, PT_DYNAMIC);
    uint64_t strings = UINT64_MAX;
    size_t length = strlen(prefix);
    char name[32];
    Elf64_Dyn d;
    size_t n = dynamic == NULL ? 0 : (size_t)(dynamic->p_filesz / sizeof d);
    if (n > 512 || length > sizeof name)
        return false;
    for (size_t i = 0; i < n && read_at(im->fd, dynamic->p_offset + i * sizeof d, &d, sizeof d); i++) {
        if (d.d_tag == DT_STRTAB)
            strings = offset_of(im, d.d_un.d_val);
    }
    for (size_t i = 0; i < n && read_at(im->fd, dynamic->p_offset + i * sizeof d, &d, sizeof d); i++) {
        if (d.d_tag == DT_NULL)
            break;
        if (d.d_tag == DT_NEEDED && strings < (uint64_t)INT64_MAX && d.d_un.d_val < ((uint64_t)1 << 32) &&
            read_at(im->fd, strings + d.d_un.d_val, name, length) && memcmp(name, prefix, length) == 0)
            return true;
    }
    return false;
}

static tctl_target foreign(const char *detail)
{
    return (tctl_target){true, true, "foreign-program", detail};
}

static tctl_target examine_elf(int fd, const unsigned char *head, size_t size)
{
    image im = {.fd = fd};
    Elf64_Ehdr header;
    char loader[64] = {0};
    if (size < sizeof header)
        return (tctl_target){.found = true};
    memcpy(&header, head, sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != OUR_MACHINE)
        return foreign("it is built for another kind of machine than the interposer");
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > MAX_HEADERS ||
        !read_at(fd, header.e_phoff, im.headers, header.e_phnum * sizeof(Elf64_Phdr)))
        return (tctl_target){.found = true};
    im.n = header.e_phnum;
    const Elf64_Phdr *interpreter = segment(&im, PT_INTERP);
    if (interpreter == NULL) {
        if (header.e_type == ET_DYN && segment(&im, PT_DYNAMIC) != NULL && needs(&im, "lib"))
            return (tctl_target){.found = true}; /* a loader's business */
        return (tctl_target){true, false, "static-program", "a statically linked program loads no library"};
    }
    size_t n = interpreter->p_filesz < sizeof loader - 1 ? (size_t)interpreter->p_filesz : sizeof loader - 1;
    if (read_at(fd, interpreter->p_offset, loader, n) && strstr(loader, "ld-linux") == NULL)
        return foreign("its loader is not glibc's");
    if (needs(&im, "libasan.so"))
        return (tctl_target){true, true, "sanitizer-program", "AddressSanitizer must be the first library"};
    return (tctl_target){.found = true};
}

/* "#!interpreter argument": the kernel takes the first word. */
static tctl_target examine_script(const char *head, size_t size, unsigned depth)
{
    char path[HEAD];
    size_t begin = 2, n = 0;
    while (begin < size && (head[begin] == ' ' || head[begin] == '\t'))
        begin++;
    while (begin + n < size && head[begin + n] != ' ' && head[begin + n] != '\t' && head[begin + n] != '\n' &&
           head[begin + n] != '\0')
        n++;
    if (n == 0 || n >= sizeof path || depth >= SCRIPTS)
        return (tctl_target){.found = true};
    memcpy(path, head + begin, n);
    path[n] = '\0';
    tctl_target of = tctl_target_examine(path, depth + 1);
    of.found = true;
    return of;
}

tctl_target tctl_target_examine(const char *path, unsigned depth)
{
    unsigned char head[HEAD];
    struct stat st;
    tctl_target ret = {0};
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0) { /* a program may be there that can be run, but not read */
        ret.found = syscall(SYS_faccessat, AT_FDCWD, path, X_OK) == 0;
        return ret;
    }
    long n = syscall(SYS_pread64, fd, head, sizeof head, 0L);
    if (n < 4 || fstat((int)fd, &st) != 0 || !S_ISREG(st.st_mode) || (st.st_mode & 0111) == 0)
        ret.found = false;
    else if (head[0] == '#' && head[1] == '!')
        ret = examine_script((const char *)head, (size_t)n, depth);
    else if (memcmp(head, ELFMAG, SELFMAG) != 0)
        ret.found = true;
    else if (((st.st_mode & S_ISUID) != 0 && st.st_uid != geteuid()) ||
             ((st.st_mode & S_ISGID) != 0 && st.st_gid != getegid()))
        ret = (tctl_target){true, false, "privileged-program",
                            "the loader ignores LD_PRELOAD where privileges change"};
    else
        ret = examine_elf((int)fd, head, (size_t)n);
    syscall(SYS_close, fd);
    return ret;
}
