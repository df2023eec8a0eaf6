/* SPDX-License-Identifier: Apache-2.0 */
/* loads LIBRARY: loads it, has it load another one by name, closes it; then what the loader says of one that is missing. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    union {
        void *object;
        int (*function)(void);
    } u;
    void *handle = argc < 2 ? NULL : dlopen(argv[1], RTLD_NOW);
    u.object = handle == NULL ? NULL : dlsym(handle, "load_plain");
    if (u.object == NULL)
        return 1;
    printf("%d\n", u.function());
    dlclose(handle);
    printf("%s\n", dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) == NULL ? "closed" : "open");
    dlerror();
    printf("%s\n", dlopen("libnowhere.so", RTLD_NOW) == NULL ? "missing" : "found");
    const char *why = dlerror();
    printf("%s\n", why != NULL && strstr(why, "libnowhere.so") != NULL ? "said so" : "said nothing");
    return 0;
}
