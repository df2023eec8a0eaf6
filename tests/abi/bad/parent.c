/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing is wrong with this one either: it has an option of every type, one of them another plugin, and checks two
 * options against each other. */
#include "common.h"

static const tctl_source source = COMMON_SOURCE;
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const char *const modes[] = {"fast", "slow", NULL};
static const char *const units[] = {"steps", "epochs", NULL};
static const char *const child[] = {TCTL_SOURCE_ID, NULL};
static const tctl_option options[] = {
    {.name = "scale",
     .type = TCTL_INT,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "2",
     .int_min = 1,
     .int_max = 100,
     .doc = "factor of every value"},
    {.name = "divisor",
     .type = TCTL_INT,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "1",
     .int_min = 1,
     .int_max = 100,
     .doc = "must divide scale"},
    {.name = "quick", .type = TCTL_BOOL, .default_yaml = "true", .doc = "a switch"},
    {.name = "rate", .type = TCTL_REAL, .default_yaml = "0.5", .real_max = 1, .doc = "a real"},
    {.name = "mode", .type = TCTL_ENUM, .default_yaml = "fast", .choices = modes, .doc = "a word"},
    {.name = "every", .type = TCTL_COUNT, .default_yaml = "200 steps", .choices = units, .doc = "a count"},
    {.name = "limit", .type = TCTL_SIZE, .default_yaml = "4 MiB", .doc = "a size"},
    {.name = "wait", .type = TCTL_DURATION, .default_yaml = "2 min", .doc = "a duration"},
    {.name = "note", .type = TCTL_TEXT, .doc = "a text without a default"},
    {.name = "milestones",
     .type = TCTL_INT,
     .flags = TCTL_OPT_REPEATED,
     .default_yaml = "[3, 5]",
     .doc = "a list of integers"},
    {.name = "child",
     .type = TCTL_PLUGIN,
     .flags = TCTL_OPT_SEMANTIC,
     .choices = child,
     .default_yaml = "good",
     .doc = "another source"},
};

static tctl_status parent_create(const tctl_host *host, const tctl_config *config, tctl_stage **ret,
                                 tctl_error *err)
{
    int64_t scale = host->cfg_int(config, "scale"), divisor = host->cfg_int(config, "divisor");
    if (scale % divisor)
        return host->fail_option(err, config, "divisor", "divisor %d does not divide scale %d", (int)divisor,
                                 (int)scale);
    const tctl_part *part = host->cfg_part(config, "child");
    const tctl_source *inner = part ? tctl_plugin_extension(part->plugin, TCTL_SOURCE_ID) : NULL;
    if (!inner || inner->count(part->stage) != 64)
        return host->fail(err, TCTL_EPLUGIN, "the child is not there");
    if (!host->cfg_bool(config, "quick") || host->cfg_real(config, "rate") < 0.25 ||
        strcmp(host->cfg_text(config, "mode"), "fast") != 0 || host->cfg_int(config, "every") != 200 ||
        strcmp(host->cfg_text(config, "every"), "steps") != 0 || host->cfg_int(config, "limit") != 4 << 20 ||
        host->cfg_real(config, "wait") < 119 || host->cfg_given(config, "note") ||
        host->cfg_text(config, "note") || host->cfg_length(config, "milestones") != 2 ||
        host->cfg_int_at(config, "milestones", 1) != 5)
        return host->fail(err, TCTL_EINVAL, "an option has another value than its default");
    tctl_stage *stage = malloc(sizeof *stage);
    if (!stage)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes asked for", sizeof *stage);
    stage->scale = scale;
    stage->buffer = 0;
    *ret = stage;
    return TCTL_OK;
}

#define common_create parent_create
COMMON_PLUGIN("parent");
