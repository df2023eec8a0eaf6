/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands that look at runs share.
 */
#include "launcher/runs.h"

#include <string.h>
#include <time.h>

int tctl_runs_store(const tctl_command_line *line, const char **ret)
{
    tctl_error err = {0};
    if (tctl_store_locate(line->arena, ".", false, ret, &err) != TCTL_OK)
        return tctl_cli_fail(line, &err);
    return TCTL_EXIT_OK;
}

int tctl_runs_find(const tctl_command_line *line, const char *which, tctl_run *ret)
{
    tctl_error err = {0};
    const char *store = NULL;
    int exit_code = tctl_runs_store(line, &store);
    if (exit_code != TCTL_EXIT_OK)
        return exit_code;
    if (tctl_run_find(line->arena, store, which, ret, &err) != TCTL_OK)
        return tctl_cli_fail(line, &err);
    return TCTL_EXIT_OK;
}

const char *tctl_runs_when(tctl_arena *arena, uint64_t nanoseconds)
{
    time_t seconds = (time_t)(nanoseconds / 1000000000u);
    struct tm tm;
    char text[32];
    if (gmtime_r(&seconds, &tm) == NULL || strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &tm) == 0)
        return "-";
    const char *copy = tctl_arena_copy(arena, text, strlen(text));
    return copy == NULL ? "-" : copy;
}

const char *tctl_runs_metric(tctl_arena *arena, const json_t *metrics)
{
    static const char *const order[] = {"test_accuracy", "accuracy", "train_accuracy", "test_loss",
                                        "train_loss"};
    const json_t *values = json_object_get(metrics, "values");
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        const json_t *value = json_object_get(values, order[i]);
        if (!json_is_number(value))
            continue;
        bool percent = strstr(order[i], "accuracy") != NULL;
        const char *text = tctl_arena_format(arena, percent ? "%s %.2f %%" : "%s %.5g", order[i],
                                             json_number_value(value) * (percent ? 100 : 1));
        return text == NULL ? "" : text;
    }
    return "";
}

const char *tctl_runs_short(tctl_arena *arena, const json_t *digest)
{
    const char *text = json_string_value(digest);
    const char *copy = text == NULL ? NULL : tctl_arena_format(arena, "%.12s", text);
    return copy == NULL ? "-" : copy;
}
