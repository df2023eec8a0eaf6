/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of networks of the zoo share: a pool of two threads, made for each test, and networks that must come to be. */
#ifndef TCTL_TESTS_ENGINE_ZOO_NETWORK_H
#define TCTL_TESTS_ENGINE_ZOO_NETWORK_H

#include <stdlib.h>

#include "zoo.h"

static tctl_pool *pool;

static int make_pool(void **state)
{
    (void)state;
    return tctl_pool_create(2, &pool, NULL);
}

static int drop_pool(void **state)
{
    (void)state;
    tctl_pool_destroy(pool);
    return 0;
}

static tctl_network *create(const toy *t)
{
    tctl_error err = {0};
    tctl_network *net = NULL;
    if (toy_create(t, pool, &net, &err))
        fail_msg("model '%s': %s", t->name, err.message);
    if (!net)
        abort();
    return net;
}

static const toy *find(const char *name)
{
    for (size_t z = 0; z < ZOO; z++) {
        if (strcmp(zoo[z].name, name) == 0)
            return &zoo[z];
    }
    abort(); /* a name that the zoo lacks */
}

#endif
