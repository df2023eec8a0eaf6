/* SPDX-License-Identifier: Apache-2.0 */
/* seeds HOW: a few random numbers, seeded in one of the ways in which programs seed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static void print_rand(void)
{
    printf("%d %d\n", rand(), rand());
}

static void print_48(void)
{
    printf("%ld %ld\n", lrand48(), lrand48());
}

static unsigned micro(void)
{
    struct timeval t;
    gettimeofday(&t, NULL);
    return (unsigned)t.tv_usec;
}

static unsigned nano(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (unsigned)((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec);
}

static unsigned entropy(void)
{
    unsigned v = 0;
    return getrandom(&v, sizeof v, 0) == (ssize_t)sizeof v ? v : 0;
}

/* The seed that a way makes, by name; 0 if it is none of a number's. */
static unsigned seed_of(const char *how)
{
    if (strcmp(how, "time") == 0)
        return (unsigned)time(NULL);
    if (strcmp(how, "time-xor-pid") == 0)
        return (unsigned)time(NULL) ^ (unsigned)getpid();
    if (strcmp(how, "time-times-pid") == 0)
        return (unsigned)time(NULL) * (unsigned)getpid();
    if (strcmp(how, "pid") == 0)
        return (unsigned)getpid();
    if (strcmp(how, "micro") == 0)
        return micro();
    if (strcmp(how, "nano") == 0)
        return nano();
    if (strcmp(how, "entropy") == 0)
        return entropy();
    return how[0] >= '0' && how[0] <= '9' ? (unsigned)strtoul(how, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *function = argv[1], *how = argv[2];
    unsigned seed = seed_of(how);
    if (strcmp(function, "none") == 0) {
        print_rand();
        print_48();
    } else if (strcmp(function, "srand") == 0) {
        srand(seed);
        print_rand();
    } else if (strcmp(function, "srandom") == 0) {
        srandom(seed);
        printf("%ld\n", random());
    } else if (strcmp(function, "srand48") == 0) {
        srand48((long)seed);
        print_48();
    } else if (strcmp(function, "seed48") == 0) {
        unsigned short state[3] = {0x330e, (unsigned short)seed, (unsigned short)(seed >> 16)};
        seed48(state);
        print_48();
    } else if (strcmp(function, "rand_r") == 0) {
        printf("%d", rand_r(&seed));
        printf(" %d", rand_r(&seed));
        printf(" %d\n", rand_r(&seed));
    } else if (strcmp(function, "initstate") == 0) {
        char state[64];
        initstate(seed, state, sizeof state);
        printf("%ld\n", random());
    } else {
        return 2;
    }
    return 0;
}
