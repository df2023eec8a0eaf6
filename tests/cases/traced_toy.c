/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that keeps the contract of the trace (docs/determinism.md) with three numbers for a model, and goes wrong
 * where it is told to: traced-toy STEPS [FIELD STEP], FIELD one of initial, batch, loss, gradient, parameter. What it is
 * wrong by comes from the clock.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/num.h"
#include "host/npy.h"
#include "manifest/digest.h"
#include "manifest/trace.h"

enum { BATCH, OUTPUT, LOSS, GRADIENT, PARAMETER, N_FIELDS, N = 3 };

static const char *const names[N_FIELDS] = {"batch", "forward/layer1", "loss", "gradient/w", "parameter/w"};
static const char *wrong_field = "";
static uint64_t wrong_step;
static float values[N_FIELDS][N];

static uint64_t number(const char *text)
{
    uint64_t value = 0;
    if (text == NULL || !tctl_parse_uint(text, strlen(text), &value))
        exit(2);
    return value;
}

/* The last element gets sixteen bits of the clock. */
static void go_wrong(const char *field, uint64_t step, float *x, int n)
{
    struct timespec now;
    uint32_t bits;
    if (strcmp(field, wrong_field) != 0 || step != wrong_step)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    memcpy(&bits, &x[n - 1], sizeof bits);
    bits ^= ((uint32_t)now.tv_nsec & 0xffffu) << 5; /* enough to outlive the rounding of an update */
    memcpy(&x[n - 1], &bits, sizeof bits);
}

static void compute(uint64_t step)
{
    for (int i = 0; i < N; i++)
        values[BATCH][i] = 1.0f / (float)(step + (uint64_t)i + 1);
    go_wrong("batch", step, values[BATCH], N);
    float loss = 0;
    for (int i = 0; i < N; i++)
        values[OUTPUT][i] = values[BATCH][i] * values[PARAMETER][i];
    go_wrong("loss", step, values[OUTPUT], N);
    for (int i = 0; i < N; i++)
        loss += values[OUTPUT][i];
    values[LOSS][0] = loss;
    for (int i = 0; i < N; i++)
        values[GRADIENT][i] = loss * values[BATCH][i];
    go_wrong("gradient", step, values[GRADIENT], N);
    for (int i = 0; i < N; i++)
        values[PARAMETER][i] -= 0.01f * values[GRADIENT][i];
    go_wrong("parameter", step, values[PARAMETER], N);
}

/* A trace of the fields of which `detailed` says whether they are the detailed ones. */
static tctl_trace_file *create(const char *path, bool detailed)
{
    tctl_trace_field fields[N_FIELDS];
    tctl_trace_file *file = NULL;
    uint32_t n = 0;
    for (int f = 0; f < N_FIELDS; f++) {
        if ((f == OUTPUT) == detailed)
            fields[n++] =
                (tctl_trace_field){.name = names[f], .kind = f == LOSS ? TCTL_TRACE_F32 : TCTL_TRACE_DIGEST};
    }
    if (tctl_trace_create(path, fields, n, &file, NULL) != TCTL_OK)
        exit(3);
    return file;
}

static void record(tctl_trace_file *file, bool detailed, uint64_t step)
{
    tctl_trace_value row[N_FIELDS];
    uint32_t n = 0;
    for (int f = 0; f < N_FIELDS; f++) {
        uint32_t bits;
        memcpy(&bits, values[f], sizeof bits);
        if ((f == OUTPUT) == detailed)
            row[n++] = f == LOSS ? (tctl_trace_value){.lo = bits} : tctl_xxh128(values[f], sizeof values[f]);
    }
    if (tctl_trace_append(file, step, row, NULL) != TCTL_OK)
        exit(3);
}

static void dump(const char *folder, uint64_t step)
{
    for (int f = 0; f < N_FIELDS; f++) {
        char path[4400];
        const tctl_tensor tensor = {.data = values[f],
                                    .size_bytes = f == LOSS ? sizeof(float) : sizeof values[f],
                                    .dtype = TCTL_F32,
                                    .rank = f == LOSS ? 0 : 1,
                                    .dims = {N}};
        snprintf(path, sizeof path, "%s/dump-%" PRIu64 "/%s.npy", folder, step, names[f]);
        if (tctl_npy_write(path, &tensor, NULL) != TCTL_OK)
            exit(3);
    }
}

int main(int argc, char **argv)
{
    const char *path = getenv("TRAINCTL_TRACE"), *knob = strstr(getenv("TRAINCTL_KNOBS"), "trace=");
    const char *stop = getenv("TRAINCTL_TRACE_STOP"), *dumped = getenv("TRAINCTL_TRACE_DUMP"),
               *fine = getenv("TRAINCTL_TRACE_FINE");
    char folder[4096], place[4200];
    uint64_t steps = number(argv[1]), every = path == NULL ? 0 : number(knob + strlen("trace="));
    if (argc > 3) {
        wrong_field = argv[2];
        wrong_step = number(argv[3]);
    }
    snprintf(folder, sizeof folder, "%s", path == NULL ? "." : path);
    if (strrchr(folder, '/') != NULL)
        *strrchr(folder, '/') = '\0';
    snprintf(place, sizeof place, "%s/trace-fine.bin", folder);
    tctl_trace_file *trace = path == NULL ? NULL : create(path, false),
                    *detailed = fine == NULL ? NULL : create(place, true);
    for (int i = 0; i < N; i++)
        values[PARAMETER][i] = 0.5f + (float)i;
    go_wrong("initial", 0, values[PARAMETER], N);
    for (uint64_t step = 0; step <= steps; step++) {
        bool is_last = stop != NULL && step == number(stop),
             is_dumped = dumped != NULL && step == number(dumped);
        if (step > 0)
            compute(step);
        if (trace != NULL && (step % every == 0 || is_last || is_dumped))
            record(trace, false, step);
        if (detailed != NULL && is_dumped) /* FINE is asked for the same step */
            record(detailed, true, step);
        if (is_dumped)
            dump(folder, step);
        if (is_last)
            break;
    }
    if (tctl_trace_close(trace, NULL) != TCTL_OK || tctl_trace_close(detailed, NULL) != TCTL_OK)
        return 3;
    if (stop != NULL)
        return 0;
    snprintf(place, sizeof place, "%s/model.txt", getenv("TRAINCTL_OUT"));
    FILE *out = fopen(place, "w");
    return out == NULL || fprintf(out, "%a\n", (double)values[PARAMETER][N - 1]) < 0 || fclose(out) != 0;
}
