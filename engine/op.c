/* SPDX-License-Identifier: Apache-2.0 */
/* What operators share: errors, options, parameters and their initial values, chunks. */
#include "engine/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "seed/stream.h"

tctl_status tctl_op_fail(const tctl_operation *self, tctl_error *err, const char *fmt, ...)
{
    char text[TCTL_ERROR_MESSAGE];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return tctl_fail(err, TCTL_ESPEC, "operator '%s' (%s): %s", self->name, self->op->schema->op, text);
}

tctl_status tctl_op_fail_memory(const tctl_operation *self, tctl_error *err)
{
    return tctl_fail(err, TCTL_ENOMEM, "out of memory for operator '%s' (%s)", self->name,
                     self->op->schema->op);
}

const char *tctl_shape_text(const tctl_shape *s, char out[TCTL_OP_TEXT])
{
    if (s->rank == 1)
        snprintf(out, TCTL_OP_TEXT, "%lld", (long long)s->channels);
    else if (s->rank == 2)
        snprintf(out, TCTL_OP_TEXT, "%lld x %lld", (long long)s->height, (long long)s->channels);
    else
        snprintf(out, TCTL_OP_TEXT, "%lld x %lld x %lld", (long long)s->height, (long long)s->width,
                 (long long)s->channels);
    return out;
}

/* ---- options ------------------------------------------------------------------------------------------- */

/* An operator asks only for what its table has. */
static const tctl_option *find_option(const tctl_operation *self, const char *name)
{
    const tctl_op_schema *schema = self->op->schema;
    uint32_t i = 0;
    while (i < schema->n_options && strcmp(schema->options[i].name, name) != 0)
        i++;
    TCTL_BUG_IF(i == schema->n_options);
    return &schema->options[i];
}

static tctl_status fail_missing(const tctl_operation *self, const char *name, tctl_error *err)
{
    return tctl_op_fail(self, err, "option '%s' is missing", name);
}

tctl_status tctl_op_int(const tctl_operation *self, const char *name, int64_t *ret, tctl_error *err)
{
    const tctl_option *option = find_option(self, name);
    const tctl_attr *attr = tctl_node_attr(self->node, name);
    int64_t value = attr ? attr->i : 0;
    if (!attr && (!option->default_yaml ||
                  !tctl_parse_int(option->default_yaml, strlen(option->default_yaml), &value)))
        return fail_missing(self, name, err);
    if (value < option->int_min || value > option->int_max)
        return tctl_op_fail(self, err, "%s is %lld; it must be %lld to %lld", name, (long long)value,
                            (long long)option->int_min, (long long)option->int_max);
    *ret = value;
    return TCTL_OK;
}

tctl_status tctl_op_real(const tctl_operation *self, const char *name, double *ret, tctl_error *err)
{
    const tctl_option *option = find_option(self, name);
    const tctl_attr *attr = tctl_node_attr(self->node, name);
    double value = attr ? attr->type == TCTL_INT ? (double)attr->i : attr->r : 0;
    if (!attr && (!option->default_yaml ||
                  !tctl_parse_real(option->default_yaml, strlen(option->default_yaml), &value)))
        return fail_missing(self, name, err);
    if (!(value >= option->real_min && value <= option->real_max))
        return tctl_op_fail(self, err, "%s is %g; it must be %g to %g", name, value, option->real_min,
                            option->real_max);
    *ret = value;
    return TCTL_OK;
}

tctl_status tctl_op_bool(const tctl_operation *self, const char *name, bool *ret, tctl_error *err)
{
    const tctl_option *option = find_option(self, name);
    const tctl_attr *attr = tctl_node_attr(self->node, name);
    if (!attr && !option->default_yaml)
        return fail_missing(self, name, err);
    *ret = attr ? attr->i != 0 : strcmp(option->default_yaml, "true") == 0;
    return TCTL_OK;
}

tctl_status tctl_op_choice(const tctl_operation *self, const char *name, uint32_t *ret, tctl_error *err)
{
    const tctl_option *option = find_option(self, name);
    const tctl_attr *attr = tctl_node_attr(self->node, name);
    const char *word = attr ? attr->text : option->default_yaml;
    if (!word)
        return fail_missing(self, name, err);
    for (uint32_t i = 0; option->choices[i]; i++) {
        if (strcmp(word, option->choices[i]) == 0) {
            *ret = i;
            return TCTL_OK;
        }
    }
    return tctl_op_fail(self, err, "%s is '%s', which is not one of its words", name, word);
}

/* ---- parameters ---------------------------------------------------------------------------------------- */

static tctl_status declare(const tctl_op_site *site, const tctl_operation *self, tctl_parameter *p,
                           const char *name, int32_t rank, const int64_t *dims, uint32_t flags,
                           tctl_error *err)
{
    int64_t count = 1;
    *p = (tctl_parameter){.flags = flags, .rank = rank};
    for (int32_t i = 0; i < rank; i++) {
        if (dims[i] > INT32_MAX / count)
            return tctl_op_fail(self, err, "parameter '%s' has more than 2^31 elements", name);
        count *= dims[i];
        p->dims[i] = dims[i];
    }
    p->count = (uint64_t)count;
    p->name = tctl_arena_format(site->arena, "%s.%s", self->name, name);
    return p->name ? TCTL_OK : tctl_op_fail_memory(self, err);
}

tctl_status tctl_op_add_parameter(const tctl_op_site *site, tctl_operation *self, const char *name,
                                  int32_t rank, const int64_t *dims, uint32_t flags, tctl_error *err)
{
    const uint32_t i = self->n_parameters;
    TCTL_BUG_IF(i == TCTL_OP_MAX_PARAMETERS);
    tctl_status st = declare(site, self, &self->parameters[i], name, rank, dims, flags, err);
    if (st)
        return st;
    self->streams[i] = tctl_arena_format(site->arena, "init.%s", self->parameters[i].name);
    self->n_parameters++;
    return self->streams[i] ? TCTL_OK : tctl_op_fail_memory(self, err);
}

tctl_status tctl_op_add_buffer(const tctl_op_site *site, tctl_operation *self, const char *name,
                               int64_t channels, tctl_error *err)
{
    TCTL_BUG_IF(self->n_buffers == TCTL_OP_MAX_BUFFERS);
    return declare(site, self, &self->buffers[self->n_buffers++], name, 1, &channels, 0, err);
}

const char *tctl_op_stream_name(const tctl_op_site *site, const tctl_operation *self, const char *prefix)
{
    return tctl_arena_format(site->arena, "%s.%s", prefix, self->name);
}

void tctl_op_init_normal(const tctl_op_site *site, tctl_operation *self, uint32_t i, double deviation)
{
    const tctl_random_address at = tctl_stream(site->seed, self->streams[i], 0, 0);
    float *w = self->param[i];
    tctl_fill_normal(&at, 0, self->parameters[i].count, w);
    for (uint64_t k = 0; k < self->parameters[i].count; k++)
        w[k] *= (float)deviation;
}

void tctl_op_init_uniform(const tctl_op_site *site, tctl_operation *self, uint32_t i, double bound)
{
    const tctl_random_address at = tctl_stream(site->seed, self->streams[i], 0, 0);
    float *w = self->param[i];
    tctl_fill_uniform(&at, 0, self->parameters[i].count, w);
    for (uint64_t k = 0; k < self->parameters[i].count; k++)
        w[k] = (2 * w[k] - 1) * (float)bound;
}

void tctl_op_init_constant(tctl_operation *self, uint32_t i, float value)
{
    for (uint64_t k = 0; k < self->parameters[i].count; k++)
        self->param[i][k] = value;
}

/* ---- chunks -------------------------------------------------------------------------------------------- */

typedef struct ranges {
    const tctl_op_call *call;
    int64_t total, grain;
    tctl_range_fn *fn;
} ranges;

static void run_range(void *arg, uint64_t chunk, uint32_t thread)
{
    const ranges *r = arg;
    int64_t first = (int64_t)chunk * r->grain, last = first + r->grain;
    r->fn(r->call, first, last < r->total ? last : r->total, thread);
}

void tctl_op_ranges(const tctl_op_call *call, int64_t total, int64_t grain, tctl_range_fn *fn)
{
    ranges r = {call, total, grain, fn};
    tctl_pool_run(call->pool, (uint64_t)((total + grain - 1) / grain), run_range, &r);
}
