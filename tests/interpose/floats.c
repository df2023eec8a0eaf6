/* SPDX-License-Identifier: Apache-2.0 */
/* floats [LIBRARY...]: whether a denormal number survives an addition, before and after loading each library. */
#include <dlfcn.h>
#include <fenv.h>
#include <float.h>
#include <pthread.h>
#include <stdio.h>

static void *print_state(void *arg)
{
    volatile float small = FLT_MIN / 4, zero = 0;
    printf("%s %s%s\n", small + zero > 0 ? "denormals" : "flushed",
           fegetround() == FE_TONEAREST ? "nearest" : "rounded", arg == NULL ? "" : " in a thread");
    return NULL;
}

int main(int argc, char **argv)
{
    print_state(NULL);
    for (int i = 1; i < argc; i++) {
        if (dlopen(argv[i], RTLD_NOW) == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        print_state(NULL);
    }
    pthread_t thread;
    pthread_create(&thread, NULL, print_state, argv);
    pthread_join(thread, NULL);
    return 0;
}
