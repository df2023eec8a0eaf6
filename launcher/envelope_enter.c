/* SPDX-License-Identifier: Apache-2.0 */
/* The envelope's part that is not the environment: what is done to the process between fork and exec, its limits. */
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/stat.h>

#include "base/num.h"
#include "launcher/envelope.h"
#include "launcher/envelope_internal.h"
#include "manifest/manifest.h"

#define CHILD_UMASK     022
#define CURRENT_PERSONA 0xffffffffu
#define LEAST_STACK     (8u << 20) /* Linux' own default */

static json_t *limit_json(rlim_t limit)
{
    return limit == RLIM_INFINITY ? json_string("unlimited") : tctl_json_count((uint64_t)limit);
}

struct rlimit tctl_envelope_stack_limit(const json_t *recorded)
{
    struct rlimit is = {LEAST_STACK, LEAST_STACK};
    getrlimit(RLIMIT_STACK, &is);
    const char *was = json_string_value(json_object_get(json_object_get(recorded, "limits"), "stack"));
    uint64_t bytes = 0;
    rlim_t wanted = is.rlim_cur == RLIM_INFINITY || is.rlim_cur > LEAST_STACK ? is.rlim_cur : LEAST_STACK;
    if (was != NULL && strcmp(was, "unlimited") == 0)
        wanted = RLIM_INFINITY;
    else if (was != NULL && tctl_parse_uint(was, strlen(was), &bytes))
        wanted = (rlim_t)bytes;
    is.rlim_cur = is.rlim_max != RLIM_INFINITY && wanted > is.rlim_max ? is.rlim_max : wanted;
    return is;
}

json_t *tctl_envelope_limits_json(const struct rlimit *stack)
{
    static const struct {
        const char *name;
        int which;
    } limits[] = {{"open_files", RLIMIT_NOFILE}, {"processes", RLIMIT_NPROC}, {"address_space", RLIMIT_AS},
                  {"data", RLIMIT_DATA},         {"file_size", RLIMIT_FSIZE}, {"cpu_seconds", RLIMIT_CPU},
                  {"locked", RLIMIT_MEMLOCK}};
    json_t *object = json_object();
    json_object_set_new(object, "core", json_string("0"));
    json_object_set_new(object, "stack", limit_json(stack->rlim_cur));
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)limits[i].which, &limit) == 0)
            json_object_set_new(object, limits[i].name, limit_json(limit.rlim_cur));
    }
    return object;
}

bool tctl_envelope_can_drop_aslr(void)
{
    int now = personality(CURRENT_PERSONA);
    if (now < 0 || personality((unsigned long)(unsigned)now | ADDR_NO_RANDOMIZE) < 0)
        return false;
    int then = personality(CURRENT_PERSONA);
    personality((unsigned long)(unsigned)now);
    return then >= 0 && ((unsigned)then & ADDR_NO_RANDOMIZE) != 0;
}

/* The first processor that we may use. */
static void stay_on_one_cpu(void)
{
    cpu_set_t may, one;
    if (sched_getaffinity(0, sizeof may, &may) != 0)
        return;
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &may))
            CPU_SET(i, &one);
    }
    sched_setaffinity(0, sizeof one, &one);
}

void tctl_envelope_enter(const tctl_envelope *envelope)
{
    static const int defaults[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGCHLD, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        signal(defaults[i], SIG_DFL);
    umask(CHILD_UMASK);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    setrlimit(RLIMIT_STACK, &envelope->stack);
    if (envelope->one_cpu)
        stay_on_one_cpu();
    if (envelope->no_aslr)
        personality((unsigned long)(unsigned)personality(CURRENT_PERSONA) | ADDR_NO_RANDOMIZE);
}
