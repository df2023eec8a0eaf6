/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floating-point environment. A shared object that was linked with -Ofast has a constructor that sets FTZ and DAZ
 * for the thread that loads it, and all later arithmetic of that thread (and of the threads it makes) is another.
 *
 * Which object did it is told by looking into the constructors for the instruction that writes the control register.
 */
#include <elf.h>
#include <fenv.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "seed/interpose/interpose.h"

#if defined(__x86_64__)

#include <xmmintrin.h>

#define MXCSR_CONTROL 0xffc0u
#define FTZ           0x8000u
#define DAZ           0x0040u
#define ROUNDING      0x6000u

tctl_fp tctl_fp_get(void)
{
    uint16_t word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    return (tctl_fp){.vector = _mm_getcsr() & MXCSR_CONTROL, .x87 = word};
}

tctl_fp tctl_fp_default(void)
{
    return (tctl_fp){.vector = 0x1f80, .x87 = 0x37f}; /* psABI, "Initial values of control registers" */
}

static void set(const tctl_fp *fp)
{
    uint16_t word = (uint16_t)fp->x87;
    _mm_setcsr((_mm_getcsr() & ~MXCSR_CONTROL) | (unsigned)fp->vector);
    __asm__ volatile("fldcw %0" : : "m"(word));
}

/* ldmxcsr m32: 0F AE /2. Up to the function's end, so far as that can be seen without decoding: a byte C3 (ret), or a
 * jump right at its beginning (frame_dummy, which every library has first). */
static bool writes_control(const uint8_t *code, size_t size)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    size_t begin = size > 4 && memcmp(code, endbr64, sizeof endbr64) == 0 ? sizeof endbr64 : 0;
    if (size > begin && (code[begin] == 0xe9 || code[begin] == 0xeb))
        return false;
    for (size_t i = begin; i + 2 < size && code[i] != 0xc3; i++) {
        if (code[i] == 0x0f && code[i + 1] == 0xae && (code[i + 2] & 0x38) == 0x10 && code[i + 2] < 0xc0)
            return true;
    }
    return false;
}

#elif defined(__aarch64__)

#define FTZ      ((uint64_t)1 << 24) /* FZ: results and inputs */
#define DAZ      ((uint64_t)1 << 24)
#define ROUNDING ((uint64_t)3 << 22)

tctl_fp tctl_fp_get(void)
{
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return (tctl_fp){.vector = control};
}

tctl_fp tctl_fp_default(void)
{
    return (tctl_fp){0};
}

static void set(const tctl_fp *fp)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(fp->vector));
}

/* msr fpcr, xN. */
static bool writes_control(const uint8_t *code, size_t size)
{
    for (size_t i = 0; i + 4 <= size; i += 4) {
        uint32_t word;
        memcpy(&word, code + i, sizeof word);
        if ((word & ~31u) == 0xd51b4400u)
            return true;
        if (word == 0xd65f03c0u || (word & 0xfc000000u) == 0x14000000u) /* ret, b: another function follows */
            return false;
    }
    return false;
}

#else /* rounding is all that C knows */

#define FTZ      0u
#define DAZ      0u
#define ROUNDING UINT64_MAX

tctl_fp tctl_fp_get(void)
{
    return (tctl_fp){.vector = (uint64_t)fegetround()};
}

tctl_fp tctl_fp_default(void)
{
    return (tctl_fp){.vector = FE_TONEAREST};
}

static void set(const tctl_fp *fp)
{
    fesetround((int)fp->vector);
}

static bool writes_control(const uint8_t *code, size_t size)
{
    (void)code;
    (void)size;
    return false;
}

#endif

/* ---- who did it ----------------------------------------------------------------------------------------- */

enum { LOOKED_AT = 96 /* bytes of a constructor: crtfastmath's takes 30 */ };

typedef struct search {
    uint64_t base;
    bool found;
} search;

static bool is_code(const struct dl_phdr_info *info, uint64_t address, size_t size)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uint64_t begin = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X) != 0 && (p->p_flags & PF_R) != 0 &&
            address >= begin && address - begin < p->p_memsz && size <= p->p_memsz - (address - begin))
            return true;
    }
    return false;
}

static bool constructors_write(const struct dl_phdr_info *info, const ElfW(Dyn) * dynamic)
{
    uint64_t array = 0, size = 0;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_INIT_ARRAY)
            array = info->dlpi_addr + dynamic->d_un.d_ptr;
        else if (dynamic->d_tag == DT_INIT_ARRAYSZ)
            size = dynamic->d_un.d_val;
    }
    for (uint64_t i = 0; array != 0 && i < size / sizeof(uint64_t); i++) {
        uint64_t function;
        memcpy(&function, (const void *)(uintptr_t)(array + i * sizeof function), sizeof function);
        size_t n = LOOKED_AT;
        while (n > 0 && !is_code(info, function, n))
            n /= 2;
        if (n > 0 && writes_control((const uint8_t *)(uintptr_t)function, n))
            return true;
    }
    return false;
}

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
    search *s = arg;
    (void)size;
    if (info->dlpi_addr != s->base)
        return 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            uint64_t address = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            s->found = constructors_write(info, (const ElfW(Dyn) *)(uintptr_t)address);
        }
    }
    return 1;
}

/* The libraries with such a constructor among the objects from `first` on; at most three names. */
static void name_culprits(size_t first, const char *fallback, char *ret, size_t room)
{
    size_t length = 0, n = 0;
    tctl_objects_update();
    ret[0] = '\0';
    for (size_t i = first; i < tctl_objects_number() && n < 3; i++) {
        const tctl_object *o = tctl_objects_at(i);
        search s = {.base = o->base};
        if (strcmp(o->path, tctl_this.program) == 0)
            continue; /* its constructors have not run */
        dl_iterate_phdr(look, &s);
        if (!s.found)
            continue;
        int written = snprintf(ret + length, room - length, "%s%s", n > 0 ? ", " : "", o->path);
        if (written < 0 || (size_t)written >= room - length)
            break;
        length += (size_t)written;
        n++;
    }
    if (n == 0)
        snprintf(ret, room, "%s", fallback);
}

/* ---- watching ------------------------------------------------------------------------------------------- */

static void describe(const tctl_fp *was, const tctl_fp *is, char *ret, size_t room)
{
    uint64_t changed = was->vector ^ is->vector;
    snprintf(ret, room, "%s%s%s%s%schanged while it was loaded; put back", (changed & FTZ) != 0 ? "FTZ " : "",
             (changed & DAZ) != 0 ? "DAZ " : "", (changed & ROUNDING) != 0 ? "rounding " : "",
             was->x87 != is->x87 ? "x87 " : "",
             (changed & ~(uint64_t)(FTZ | DAZ | ROUNDING)) != 0 ? "traps " : "");
}

void tctl_fp_restore(const tctl_fp *was, size_t first, const char *library)
{
    char detail[128], culprits[1024];
    tctl_fp is = tctl_fp_get();
    if (is.vector == was->vector && is.x87 == was->x87)
        return;
    set(was);
    describe(was, &is, detail, sizeof detail);
    name_culprits(first, library, culprits, sizeof culprits);
    tctl_report_event("fp-environment", culprits, detail);
}
