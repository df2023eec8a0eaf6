/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operators again, as naively as they can be written: one loop per index, one element at a time. Included twice:
 *
 *   REAL float,  FMA fmaf            the chains and trees of docs/numerics.md: the engine must give these bits
 *   REAL double, FMA a * b + c       what finite differences are taken of
 *
 * Define REAL, FMA, EXP, LOG, SQRT, and NAME(x) before; and NAME(activation)(op, x), NAME(slope)(op, x, y) for functions
 * of one number.
 */

typedef struct NAME(value) {
    int64_t h, w, c;
    REAL *y, *dy;     /* [n][h][w][c] */
    int *winner;      /* maxpool: input pixel */
    REAL *mean, *inv; /* batchnorm */
    bool flat, written;
} NAME(value);

typedef struct NAME(net) {
    const toy *t;
    int64_t n, classes, labels;
    REAL *param[2 * TOY_MAX_OPS], *grad[2 * TOY_MAX_OPS];
    int64_t size[2 * TOY_MAX_OPS];
    REAL *running[2 * TOY_MAX_OPS];
    int n_params, n_ops;
    NAME(value) input, values[TOY_MAX_OPS];
    tctl_network_batch batch;
    REAL loss;
} NAME(net);

static REAL *NAME(array)(int64_t n)
{
    REAL *p = calloc((size_t)(n ? n : 1), sizeof *p);
    if (!p)
        abort();
    return p;
}

/* ---- sums ---------------------------------------------------------------------------------------------- */

/* A chain over positions first..last-1. */
typedef REAL NAME(chain_fn)(const void *arg, int64_t first, int64_t last);

static REAL NAME(join)(REAL *v, int64_t n)
{
    for (; n > 1; n = (n + 1) / 2) {
        for (int64_t i = 0; i < (n + 1) / 2; i++)
            v[i] = 2 * i + 1 < n ? v[2 * i] + v[2 * i + 1] : v[2 * i];
    }
    return v[0];
}

static REAL NAME(tree_sum)(int64_t n, int64_t h, int64_t w, NAME(chain_fn) * chain, const void *arg)
{
    static REAL units[4096], leaves[4096];
    int64_t n_units = 0, samples = 1;
    while (samples < 64 && 2 * samples * h * w <= 1024)
        samples *= 2;
    if (h * w <= 1024) {
        for (int64_t s = 0; s < n; s += samples)
            units[n_units++] = chain(arg, s * h * w, (s + samples < n ? s + samples : n) * h * w);
        return NAME(join)(units, n_units);
    }
    int64_t rows = 1;
    while (2 * rows * w <= 1024)
        rows *= 2;
    for (int64_t s = 0; s < n; s++) {
        int64_t n_leaves = 0;
        for (int64_t r = 0; r < h; r += rows)
            leaves[n_leaves++] = chain(arg, (s * h + r) * w, (s * h + (r + rows < h ? r + rows : h)) * w);
        units[n_units++] = NAME(join)(leaves, n_leaves);
    }
    return NAME(join)(units, n_units);
}

/* Plain sums of one channel: of a, or of a * (b - center), or of (b - center)^2. */
typedef struct NAME(column) {
    const REAL *a, *b;
    REAL center;
    int64_t c, channels;
} NAME(column);

static REAL NAME(chain_plain)(const void *arg, int64_t first, int64_t last)
{
    const NAME(column) *k = arg;
    REAL sum = 0;
    for (int64_t r = first; r < last; r++)
        sum += k->a[r * k->channels + k->c];
    return sum;
}

static REAL NAME(chain_square)(const void *arg, int64_t first, int64_t last)
{
    const NAME(column) *k = arg;
    REAL sum = 0;
    for (int64_t r = first; r < last; r++) {
        REAL d = k->b[r * k->channels + k->c] - k->center;
        sum += d * d;
    }
    return sum;
}

static REAL NAME(chain_product)(const void *arg, int64_t first, int64_t last)
{
    const NAME(column) *k = arg;
    REAL sum = 0;
    for (int64_t r = first; r < last; r++)
        sum += k->a[r * k->channels + k->c] * (k->b[r * k->channels + k->c] - k->center);
    return sum;
}

/* ---- convolution --------------------------------------------------------------------------------------- */

typedef struct NAME(conv) {
    const NAME(value) * in, *out;
    int64_t kernel, stride, pad, dilation, groups, icg, ocg;
    int64_t ty, tx, i, o; /* of the weight whose gradient is asked */
} NAME(conv);

static NAME(conv) NAME(conv_of)(const toy_op *o, const NAME(value) * in, const NAME(value) * out)
{
    NAME(conv)
    c = {.in = in,
         .out = out,
         .kernel = o->kernel ? o->kernel : 1,
         .stride = o->stride ? o->stride : 1,
         .pad = o->pad,
         .dilation = o->dilation ? o->dilation : 1,
         .groups = o->groups ? o->groups : 1};
    c.icg = in->c / c.groups;
    c.ocg = out->c / c.groups;
    return c;
}

static REAL NAME(pixel)(const NAME(value) * v, const REAL *data, int64_t n, int64_t y, int64_t x, int64_t c)
{
    return y < 0 || y >= v->h || x < 0 || x >= v->w ? 0 : data[((n * v->h + y) * v->w + x) * v->c + c];
}

static void NAME(conv_forward)(const NAME(conv) * c, int64_t n, const REAL *w, const REAL *bias)
{
    const NAME(value) *out = c->out;
    for (int64_t p = 0; p < n * out->h * out->w; p++) {
        int64_t s = p / (out->h * out->w), oy = p / out->w % out->h, ox = p % out->w;
        for (int64_t o = 0; o < out->c; o++) {
            REAL sum = bias ? bias[o] : 0;
            for (int64_t ty = 0; ty < c->kernel; ty++) {
                for (int64_t tx = 0; tx < c->kernel; tx++) {
                    for (int64_t i = 0; i < c->icg; i++)
                        sum = FMA(NAME(pixel)(c->in, c->in->y, s, oy * c->stride - c->pad + ty * c->dilation,
                                              ox * c->stride - c->pad + tx * c->dilation,
                                              o / c->ocg * c->icg + i),
                                  w[((ty * c->kernel + tx) * c->icg + i) * out->c + o], sum);
                }
            }
            out->y[p * out->c + o] = sum;
        }
    }
}

/* The chain of one input element goes on from what is there. */
static void NAME(conv_dx)(const NAME(conv) * c, int64_t n, const REAL *w, NAME(value) * in)
{
    const NAME(value) *out = c->out;
    for (int64_t p = 0; p < n * in->h * in->w * in->c; p++) {
        int64_t ch = p % in->c, x = p / in->c % in->w, y = p / in->c / in->w % in->h,
                s = p / in->c / in->w / in->h;
        REAL sum = in->written ? in->dy[p] : 0;
        for (int64_t ty = 0; ty < c->kernel; ty++) {
            for (int64_t tx = 0; tx < c->kernel; tx++) {
                int64_t oy = y + c->pad - ty * c->dilation, ox = x + c->pad - tx * c->dilation;
                if (oy % c->stride != 0 || ox % c->stride != 0)
                    continue;
                for (int64_t k = 0; k < c->ocg; k++) {
                    int64_t o = ch / c->icg * c->ocg + k;
                    sum = FMA(NAME(pixel)(out, out->dy, s, oy / c->stride, ox / c->stride, o),
                              w[((ty * c->kernel + tx) * c->icg + ch % c->icg) * out->c + o], sum);
                }
            }
        }
        in->dy[p] = sum;
    }
    in->written = true;
}

static REAL NAME(chain_weight)(const void *arg, int64_t first, int64_t last)
{
    const NAME(conv) *c = arg;
    const NAME(value) *out = c->out;
    REAL sum = 0;
    for (int64_t p = first; p < last; p++) {
        int64_t s = p / (out->h * out->w), oy = p / out->w % out->h, ox = p % out->w;
        sum = FMA(NAME(pixel)(c->in, c->in->y, s, oy * c->stride - c->pad + c->ty * c->dilation,
                              ox * c->stride - c->pad + c->tx * c->dilation, c->o / c->ocg * c->icg + c->i),
                  out->dy[p * out->c + c->o], sum);
    }
    return sum;
}

static void NAME(conv_dw)(NAME(conv) c, int64_t n, REAL *dw, REAL *db)
{
    for (int64_t k = 0; k < c.kernel * c.kernel * c.icg * c.out->c; k++) {
        c.o = k % c.out->c;
        c.i = k / c.out->c % c.icg;
        c.tx = k / c.out->c / c.icg % c.kernel;
        c.ty = k / c.out->c / c.icg / c.kernel;
        dw[k] = NAME(tree_sum)(n, c.out->h, c.out->w, NAME(chain_weight), &c);
    }
    for (int64_t o = 0; db && o < c.out->c; o++) {
        NAME(column) column = {.a = c.out->dy, .c = o, .channels = c.out->c};
        db[o] = NAME(tree_sum)(n, c.out->h, c.out->w, NAME(chain_plain), &column);
    }
}

/* ---- batch normalization ------------------------------------------------------------------------------- */

static void NAME(bn_forward)(NAME(net) * net, const NAME(value) * in, NAME(value) * out, const REAL *scale,
                             const REAL *shift, REAL *running_mean, REAL *running_var)
{
    const int64_t rows = net->n * in->h * in->w;
    const REAL count = (REAL)rows, eps = (REAL)1e-5;
    for (int64_t c = 0; c < in->c; c++) {
        NAME(column) k = {.a = in->y, .b = in->y, .c = c, .channels = in->c};
        out->mean[c] = NAME(tree_sum)(net->n, in->h, in->w, NAME(chain_plain), &k) / count;
        k.center = out->mean[c];
        REAL squares = NAME(tree_sum)(net->n, in->h, in->w, NAME(chain_square), &k);
        out->inv[c] = 1 / SQRT(squares / count + eps);
        running_mean[c] = running_mean[c] * (REAL)0.9 + out->mean[c] * (REAL)0.1;
        running_var[c] = running_var[c] * (REAL)0.9 + squares / (rows > 1 ? (REAL)(rows - 1) : 1) * (REAL)0.1;
        REAL factor = scale ? scale[c] * out->inv[c] : out->inv[c];
        for (int64_t r = 0; r < rows; r++)
            out->y[r * in->c + c] = (in->y[r * in->c + c] - out->mean[c]) * factor + (shift ? shift[c] : 0);
    }
}

static void NAME(bn_backward)(NAME(net) * net, NAME(value) * in, const NAME(value) * out, const REAL *scale,
                              REAL *dscale, REAL *dshift, bool wanted)
{
    const int64_t rows = net->n * in->h * in->w;
    const REAL count = (REAL)rows;
    for (int64_t c = 0; c < in->c; c++) {
        NAME(column) k = {.a = out->dy, .b = in->y, .center = out->mean[c], .c = c, .channels = in->c};
        REAL sum = NAME(tree_sum)(net->n, in->h, in->w, NAME(chain_plain), &k);
        REAL product = NAME(tree_sum)(net->n, in->h, in->w, NAME(chain_product), &k) * out->inv[c];
        if (dscale) {
            dscale[c] = product;
            dshift[c] = sum;
        }
        REAL factor = scale ? scale[c] * out->inv[c] : out->inv[c], b = sum / count;
        REAL d = out->inv[c] * (product / count);
        for (int64_t r = 0; wanted && r < rows; r++) {
            int64_t p = r * in->c + c;
            REAL g = factor * ((out->dy[p] - b) - (in->y[p] - out->mean[c]) * d);
            in->dy[p] = in->written ? in->dy[p] + g : g;
        }
    }
    in->written = true;
}

/* ---- pooling ------------------------------------------------------------------------------------------- */

static void NAME(maxpool_forward)(const toy_op *o, int64_t n, const NAME(value) * in, NAME(value) * out)
{
    const int64_t stride = o->stride ? o->stride : o->kernel;
    for (int64_t p = 0; p < n * out->h * out->w * out->c; p++) {
        int64_t c = p % out->c, ox = p / out->c % out->w, oy = p / out->c / out->w % out->h;
        int64_t s = p / out->c / out->w / out->h, best = -1;
        for (int64_t ty = 0; ty < o->kernel; ty++) {
            for (int64_t tx = 0; tx < o->kernel; tx++) {
                int64_t y = oy * stride - o->pad + ty, x = ox * stride - o->pad + tx;
                if (y < 0 || y >= in->h || x < 0 || x >= in->w)
                    continue;
                int64_t q = ((s * in->h + y) * in->w + x) * in->c + c;
                if (best < 0 || in->y[q] > in->y[best] || (isnan(in->y[q]) && !isnan(in->y[best])))
                    best = q;
            }
        }
        out->y[p] = in->y[best];
        out->winner[p] = (int)best;
    }
}

static void NAME(maxpool_backward)(const toy_op *o, int64_t n, NAME(value) * in, const NAME(value) * out)
{
    const int64_t stride = o->stride ? o->stride : o->kernel;
    for (int64_t p = 0; p < n * out->h * out->w * out->c; p++) {
        int64_t c = p % out->c, ox = p / out->c % out->w, oy = p / out->c / out->w % out->h;
        int64_t s = p / out->c / out->w / out->h;
        for (int64_t tap = 0; tap < o->kernel * o->kernel; tap++) {
            int64_t y = oy * stride - o->pad + tap / o->kernel, x = ox * stride - o->pad + tap % o->kernel;
            int64_t q = ((s * in->h + y) * in->w + x) * in->c + c;
            if (y >= 0 && y < in->h && x >= 0 && x < in->w)
                in->dy[q] += out->winner[p] == q ? out->dy[p] : 0;
        }
    }
}

/* ---- what the graph knows ------------------------------------------------------------------------------ */

static NAME(value) * NAME(source)(NAME(net) * net, int from, int i)
{
    int k = from ? from - 1 : i - 1;
    return k < 0 ? &net->input : &net->values[k];
}

static int64_t NAME(count)(const NAME(value) * v)
{
    return v->h * v->w * v->c;
}

static void NAME(add_gradient)(NAME(value) * in, int64_t p, REAL g)
{
    in->dy[p] = in->written ? in->dy[p] + g : g;
}

#include "reference_sequence.h"

/* ---- the whole ------------------------------------------------------------------------------------------ */

static void NAME(shape)(const toy_op *o, const NAME(value) * in, NAME(value) * out)
{
    *out = (NAME(value)){.h = in->h, .w = in->w, .c = in->c};
    int64_t kernel = o->kernel, dilation = o->dilation ? o->dilation : 1;
    const bool pool = strcmp(o->op, "maxpool") == 0 || strcmp(o->op, "avgpool") == 0;
    int64_t stride = o->stride ? o->stride : pool ? kernel : 1;
    if (kernel) {
        out->h = (in->h + 2 * o->pad - dilation * (kernel - 1) - 1) / stride + 1;
        out->w = (in->w + 2 * o->pad - dilation * (kernel - 1) - 1) / stride + 1;
    }
    if (o->out)
        out->c = o->out;
    if (strcmp(o->op, "globalavgpool") == 0)
        out->h = out->w = 1;
    if (strcmp(o->op, "flatten") == 0)
        *out = (NAME(value)){.h = 1, .w = 1, .c = NAME(count)(in)};
    if (strcmp(o->op, "tokens") == 0)
        *out = (NAME(value)){.h = in->h * in->w, .w = 1, .c = in->c};
    if (strcmp(o->op, "attention") == 0 && !o->from3)
        out->c = in->c / 3;
    if (strcmp(o->op, "convtranspose") == 0) {
        out->h = (in->h - 1) * stride + kernel - 2 * o->pad;
        out->w = (in->w - 1) * stride + kernel - 2 * o->pad;
    }
}

static void NAME(add_param)(NAME(net) * net, int64_t size)
{
    net->param[net->n_params] = NAME(array)(size);
    net->grad[net->n_params] = NAME(array)(size);
    net->size[net->n_params++] = size;
}

/* Shapes and zeroed arrays; parameters to be filled in. */
static void NAME(create)(NAME(net) * net, const toy *t, int64_t n)
{
    *net = (NAME(net)){.t = t, .n = n, .n_ops = (int)toy_count(t)};
    net->input =
        (NAME(value)){.h = t->height ? t->height : 1, .w = t->height ? t->width : 1, .c = t->channels};
    if (toy_tokens(t))
        net->input = (NAME(value)){.h = t->channels, .w = 1, .c = 1};
    net->input.y = NAME(array)(n * NAME(count)(&net->input));
    net->input.dy = NAME(array)(n * NAME(count)(&net->input));
    for (int i = 0; i < net->n_ops; i++) {
        const toy_op *o = &t->ops[i];
        const NAME(value) *in = NAME(source)(net, o->from, i);
        NAME(value) *v = &net->values[i];
        NAME(shape)(o, in, v);
        if (strcmp(o->op, "concat") == 0) {
            v->c += NAME(source)(net, o->from2, i)->c;
            v->c += o->from3 ? NAME(source)(net, o->from3, i)->c : 0;
        }
        v->y = NAME(array)(n * NAME(count)(v));
        v->dy = NAME(array)(n * NAME(count)(v));
        v->winner = calloc((size_t)(n * NAME(count)(v)), sizeof *v->winner);
        v->mean = NAME(array)(v->c + n * v->h * v->w); /* of a channel, or of a position */
        v->inv = NAME(array)(v->c + n * v->h * v->w);
        net->running[2 * i] = NAME(array)(v->c);
        net->running[2 * i + 1] = NAME(array)(v->c);
        for (int64_t c = 0; c < v->c; c++)
            net->running[2 * i + 1][c] = 1;
        if (strcmp(o->op, "embedding") == 0)
            NAME(add_param)(net, o->vocabulary * v->c);
        if (strcmp(o->op, "position") == 0)
            NAME(add_param)(net, NAME(count)(v));
        if (strcmp(o->op, "conv") == 0 || strcmp(o->op, "linear") == 0 ||
            strcmp(o->op, "convtranspose") == 0) {
            int64_t taps = o->kernel ? o->kernel * o->kernel : 1;
            NAME(add_param)(net, taps * (in->c / (o->groups ? o->groups : 1)) * v->c);
            if (!o->no_bias)
                NAME(add_param)(net, v->c);
        }
        if ((strcmp(o->op, "batchnorm") == 0 || strcmp(o->op, "layernorm") == 0) && !o->not_affine) {
            NAME(add_param)(net, v->c);
            NAME(add_param)(net, v->c);
        }
    }
    net->labels = t->ops[0].labels ? t->ops[0].labels : 1;
    net->classes = NAME(count)(&net->values[net->n_ops - 1]) / net->labels;
}

static void NAME(destroy)(NAME(net) * net)
{
    free(net->input.y);
    free(net->input.dy);
    for (int i = 0; i < net->n_ops; i++) {
        NAME(value) *v = &net->values[i];
        free(v->y);
        free(v->dy);
        free(v->winner);
        free(v->mean);
        free(v->inv);
        free(net->running[2 * i]);
        free(net->running[2 * i + 1]);
    }
    for (int i = 0; i < net->n_params; i++) {
        free(net->param[i]);
        free(net->grad[i]);
    }
}

static bool NAME(kept)(const NAME(net) * net, const toy_op *o, int i, int64_t p, int64_t size)
{
    char name[64];
    snprintf(name, sizeof name, "dropout.%s%d", o->op, i);
    tctl_random_address at = tctl_stream(TOY_SEED, name, net->batch.step, net->batch.indices[p / size]);
    return tctl_draw_uniform(&at, (uint64_t)(p % size)) >= (float)o->p;
}

static void NAME(forward_op)(NAME(net) * net, int i, int *param)
{
    const toy_op *o = &net->t->ops[i];
    NAME(value) *in = NAME(source)(net, o->from, i), *v = &net->values[i];
    const int64_t size = NAME(count)(v), total = net->n * size;
    if (strcmp(o->op, "conv") == 0 || strcmp(o->op, "linear") == 0) {
        NAME(conv) c = NAME(conv_of)(o, in, v);
        NAME(conv_forward)(&c, net->n, net->param[*param], o->no_bias ? NULL : net->param[*param + 1]);
        *param += o->no_bias ? 1 : 2;
    } else if (strcmp(o->op, "batchnorm") == 0) {
        NAME(bn_forward)
        (net, in, v, o->not_affine ? NULL : net->param[*param], o->not_affine ? NULL : net->param[*param + 1],
         net->running[2 * i], net->running[2 * i + 1]);
        *param += o->not_affine ? 0 : 2;
    } else if (strcmp(o->op, "relu") == 0) {
        for (int64_t p = 0; p < total; p++)
            v->y[p] = in->y[p] <= 0 ? 0 : in->y[p];
    } else if (strcmp(o->op, "maxpool") == 0) {
        NAME(maxpool_forward)(o, net->n, in, v);
    } else if (strcmp(o->op, "globalavgpool") == 0) {
        for (int64_t p = 0; p < total; p++) {
            NAME(column) k = {.a = in->y + p / in->c * NAME(count)(in), .c = p % in->c, .channels = in->c};
            v->y[p] = NAME(tree_sum)(1, in->h, in->w, NAME(chain_plain), &k) / (REAL)(in->h * in->w);
        }
    } else if (strcmp(o->op, "add") == 0) {
        const NAME(value) *b = NAME(source)(net, o->from2, i);
        for (int64_t p = 0; p < total; p++)
            v->y[p] = in->y[p] + b->y[p];
    } else if (strcmp(o->op, "dropout") == 0) {
        for (int64_t p = 0; p < total; p++)
            v->y[p] = NAME(kept)(net, o, i, p, size) ? in->y[p] * (REAL)(1 / (1 - o->p)) : 0;
    } else if (NAME(is_more)(o)) {
        NAME(forward_more)(net, i, param);
    } else {
        memcpy(v->y, in->y, (size_t)total * sizeof(REAL));
    }
}

static void NAME(loss_and_gradient)(NAME(net) * net)
{
    const int64_t k = net->classes;
    const double e = net->t->smoothing;
    NAME(value) *v = &net->values[net->n_ops - 1];
    REAL *losses = NAME(array)(net->n * net->labels);
    for (int64_t s = 0; s < net->n * net->labels; s++) {
        const REAL *z = v->y + s * k;
        REAL max = z[0], sum = 0, shifted = 0;
        for (int64_t j = 1; j < k; j++)
            max = z[j] > max ? z[j] : max;
        for (int64_t j = 0; j < k; j++) {
            sum += EXP(z[j] - max);
            shifted += z[j] - max;
        }
        int64_t label = net->batch.labels[s];
        REAL target = (REAL)(1 - e) * (z[label] - max);
        losses[s] = LOG(sum) - (e > 0 ? target + (REAL)(e / (double)k) * shifted : target);
        REAL scale = (REAL)(net->batch.loss_scale / (net->batch.divisor * (double)net->labels));
        for (int64_t j = 0; j < k; j++)
            v->dy[s * k + j] =
                (EXP(z[j] - max) / sum - (REAL)(j == label ? 1 - e + e / (double)k : e / (double)k)) * scale;
    }
    NAME(column) column = {.a = losses, .channels = 1};
    net->loss = (REAL)((double)NAME(tree_sum)(net->n, net->labels, 1, NAME(chain_plain), &column) /
                       (net->batch.divisor * (double)net->labels));
    free(losses);
    v->written = true;
}

static void NAME(forward)(NAME(net) * net)
{
    net->input.written = false;
    int param = 0;
    for (int i = 0; i < net->n_ops; i++) {
        NAME(forward_op)(net, i, &param);
        net->values[i].written = false;
    }
    NAME(loss_and_gradient)(net);
}

static void NAME(backward_op)(NAME(net) * net, int i, int *param)
{
    const toy_op *o = &net->t->ops[i];
    NAME(value) *in = NAME(source)(net, o->from, i), *v = &net->values[i];
    const int64_t size = NAME(count)(v), total = net->n * size;
    if (NAME(is_more)(o)) {
        NAME(backward_more)(net, i, param);
        return;
    }
    if (strcmp(o->op, "conv") == 0 || strcmp(o->op, "linear") == 0) {
        NAME(conv) c = NAME(conv_of)(o, in, v);
        *param -= o->no_bias ? 1 : 2;
        NAME(conv_dw)(c, net->n, net->grad[*param], o->no_bias ? NULL : net->grad[*param + 1]);
        NAME(conv_dx)(&c, net->n, net->param[*param], in);
        return;
    }
    if (strcmp(o->op, "batchnorm") == 0) {
        *param -= o->not_affine ? 0 : 2;
        NAME(bn_backward)
        (net, in, v, o->not_affine ? NULL : net->param[*param], o->not_affine ? NULL : net->grad[*param],
         o->not_affine ? NULL : net->grad[*param + 1], true);
        return;
    }
    if (strcmp(o->op, "maxpool") == 0) {
        if (!in->written)
            memset(in->dy, 0, (size_t)(net->n * NAME(count)(in)) * sizeof(REAL));
        NAME(maxpool_backward)(o, net->n, in, v);
    } else if (strcmp(o->op, "globalavgpool") == 0) {
        for (int64_t p = 0; p < net->n * NAME(count)(in); p++)
            NAME(add_gradient)(in, p, v->dy[p / NAME(count)(in) * v->c + p % v->c] / (REAL)(in->h * in->w));
    } else if (strcmp(o->op, "add") == 0) {
        NAME(value) *b = NAME(source)(net, o->from2, i);
        for (int64_t p = 0; p < total; p++)
            NAME(add_gradient)(in, p, v->dy[p]);
        in->written = true;
        for (int64_t p = 0; p < total; p++)
            NAME(add_gradient)(b, p, v->dy[p]);
        b->written = true;
    } else {
        for (int64_t p = 0; p < total; p++) {
            REAL g = v->dy[p];
            if (strcmp(o->op, "relu") == 0)
                g = v->y[p] <= 0 ? 0 : g;
            else if (strcmp(o->op, "dropout") == 0)
                g = NAME(kept)(net, o, i, p, size) ? g * (REAL)(1 / (1 - o->p)) : 0;
            NAME(add_gradient)(in, p, g);
        }
    }
    in->written = true;
}

static void NAME(backward)(NAME(net) * net)
{
    int param = net->n_params;
    for (int i = net->n_ops - 1; i >= 0; i--)
        NAME(backward_op)(net, i, &param);
}
