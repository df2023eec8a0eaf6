/* SPDX-License-Identifier: Apache-2.0 */
/* A library that loads another one by name alone, through its own RUNPATH or RPATH. */
#include <dlfcn.h>
#include <stddef.h>

int load_plain(void);

__attribute__((visibility("default"))) int load_plain(void)
{
    union {
        void *object;
        int (*function)(void);
    } u;
    void *handle = dlopen("libplain.so", RTLD_NOW);
    u.object = handle == NULL ? NULL : dlsym(handle, "plain_answer");
    int answer = u.object == NULL ? -1 : u.function();
    if (handle != NULL)
        dlclose(handle);
    return answer;
}
