/* SPDX-License-Identifier: Apache-2.0 */
/* See conv_channelwise.h. Bands and chunks decide the time only. */
#include "engine/conv_channelwise.h"

#include "engine/channelwise/channelwise.h"

enum {
    MAX_COLUMNS =
        8, /* channels of a group of the result; with more, tiles of the matrix product are better */
    MAX_PLANES = 16, /* channels of a group that are read: how much larger a spread image is */
    MAX_STRIDE = 8,
    MAX_TERMS = 36, /* of a first layer: with more, what a tile of the matrix product costs does not count */
    BAND_FLOATS = 1 << 15, /* a quarter of a second-level cache */
    CHUNKS_PER_THREAD = 2  /* at least, where a batch is small */
};

bool tctl_conv_channelwise_few(const tctl_window *w, int64_t groups, int64_t in_group)
{
    return groups == 1 && w->kernel > 1 && w->kernel * w->kernel * in_group <= MAX_TERMS;
}

bool tctl_conv_channelwise_fits(const tctl_window *w, int64_t groups, int64_t in_group, int64_t out_group)
{
    (void)w;
    return groups > 1 && in_group <= MAX_PLANES && out_group <= MAX_COLUMNS;
}

bool tctl_conv_channelwise_fits_back(const tctl_window *w, int64_t groups, int64_t in_group,
                                     int64_t out_group)
{
    return groups > 1 && in_group <= MAX_COLUMNS && out_group <= MAX_PLANES && w->stride <= MAX_STRIDE;
}

static int64_t min_int(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max_int(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t divide_down(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -divide_up(-a, b);
}

static int64_t reach_of(const tctl_window *w)
{
    return w->dilation * (w->kernel - 1);
}

/* ---- bands --------------------------------------------------------------------------------------------- */

/* Rows of x that `rows` rows of y read. */
static int64_t band_rows(const tctl_conv_channelwise *c, int64_t rows)
{
    return (rows - 1) * c->window.stride + reach_of(&c->window) + 1;
}

/* The first row of dy that row y of dx reads, and the last. */
static int64_t first_read(const tctl_window *w, int64_t y)
{
    return divide_down(y + w->pad - reach_of(w), w->stride);
}

static int64_t last_read(const tctl_window *w, int64_t y)
{
    return (y + w->pad) / w->stride;
}

static int64_t band_rows_back(const tctl_conv_channelwise *c, int64_t rows)
{
    return divide_up(rows - 1 + reach_of(&c->window), c->window.stride) + 1;
}

/* Most rows, at least 1, whose band has the size wanted; equal parts of `height`. */
static int64_t choose_rows(const tctl_conv_channelwise *c, int64_t height, int64_t row,
                           int64_t (*rows_of)(const tctl_conv_channelwise *, int64_t))
{
    int64_t most = 1;
    while (most < height && rows_of(c, most + 1) * row <= BAND_FLOATS)
        most++;
    return divide_up(height, divide_up(height, most));
}

/* ---- the plan ------------------------------------------------------------------------------------------ */

static bool plan_forward(tctl_arena *arena, tctl_conv_channelwise *c)
{
    const tctl_window *w = &c->window;
    const int64_t row = tctl_spread_row(&c->x), pixel = tctl_spread_pixel(&c->x);
    ptrdiff_t *terms = tctl_arena_take_array(arena, (size_t)c->n_terms, sizeof *terms);
    if (!terms)
        return false;
    for (int64_t t = 0; t < c->n_terms; t++) {
        const int64_t tap = t / c->x.planes;
        terms[t] = (ptrdiff_t)(tap / w->kernel * w->dilation * row + tap % w->kernel * w->dilation * pixel +
                               t % c->x.planes * c->x.groups * c->x.columns);
    }
    c->terms = terms;
    c->rows = choose_rows(c, w->out_height, row, band_rows);
    return true;
}

/* Terms of one phase, from what dx reads through a tap at distance 0. */
static void list_terms(const tctl_conv_channelwise *c, const tctl_phase *p, int64_t index, ptrdiff_t *terms)
{
    const tctl_window *w = &c->window;
    const int64_t row = tctl_spread_row(&c->dy), pixel = tctl_spread_pixel(&c->dy);
    const int64_t phase_y = index / w->stride, phase_x = index % w->stride;
    for (int64_t i = 0; i < p->n_tap_y; i++) {
        const int64_t y = ((p->tap_y + i * p->tap_step) * w->dilation - phase_y) / w->stride;
        for (int64_t j = 0; j < p->n_tap_x; j++) {
            const int64_t x = ((p->tap_x + j * p->tap_step) * w->dilation - phase_x) / w->stride;
            for (int64_t o = 0; o < c->dy.planes; o++)
                *terms++ = (ptrdiff_t)(o * c->in - y * row - x * pixel);
        }
    }
}

static bool plan_back(tctl_arena *arena, tctl_conv_channelwise *c)
{
    const tctl_window *w = &c->window;
    const int64_t n = w->stride * w->stride;
    ptrdiff_t *terms = tctl_arena_take_array(arena, (size_t)c->n_terms_back, sizeof *terms);
    tctl_channelwise_phase *phases = tctl_arena_take_array(arena, (size_t)n, sizeof *phases);
    if (!terms || !phases)
        return false;
    int64_t first = 0;
    for (int64_t i = 0; i < n; i++) { /* each tap belongs to one phase */
        const tctl_phase p = tctl_phase_of(w, i);
        phases[i] = (tctl_channelwise_phase){p, first, p.n_tap_y * p.n_tap_x * c->dy.planes};
        list_terms(c, &p, i, terms + first);
        first += phases[i].n_terms;
    }
    c->terms_back = terms;
    c->phases = phases;
    c->rows_back = choose_rows(c, w->height, tctl_spread_row(&c->dy), band_rows_back);
    return true;
}

bool tctl_conv_channelwise_plan(tctl_arena *arena, const tctl_window *w, int64_t in, int64_t out,
                                int64_t groups, tctl_conv_channelwise *ret)
{
    const int64_t in_group = in / groups, out_group = out / groups, taps = w->kernel * w->kernel;
    *ret = (tctl_conv_channelwise){
        .window = *w,
        .x = {w->height, w->width, groups, in_group, out_group, w->pad, w->pad},
        .dy = {w->out_height, w->out_width, groups, out_group, in_group, max_int(0, -first_read(w, 0)),
               max_int(0, last_read(w, w->width - 1) - (w->out_width - 1))},
        .in = in,
        .out = out,
        .few = tctl_conv_channelwise_few(w, groups, in_group),
        .n_terms = taps * in_group,
        .n_terms_back = taps * out_group,
    };
    if (ret->few)
        ret->x.columns = 1;
    if ((ret->few || tctl_conv_channelwise_fits(w, groups, in_group, out_group)) && !plan_forward(arena, ret))
        return false;
    return !tctl_conv_channelwise_fits_back(w, groups, in_group, out_group) || plan_back(arena, ret);
}

size_t tctl_conv_channelwise_shared_floats(const tctl_conv_channelwise *c)
{
    const int64_t forward = c->terms ? c->n_terms * tctl_channelwise_stride(c->out) : 0;
    const int64_t back = c->terms_back ? c->n_terms_back * tctl_channelwise_stride(c->in) : 0;
    return (size_t)max_int(forward, back);
}

size_t tctl_conv_channelwise_scratch_floats(const tctl_conv_channelwise *c)
{
    const int64_t forward = c->terms ? band_rows(c, c->rows) * tctl_spread_row(&c->x) : 0;
    const int64_t back = c->terms_back ? band_rows_back(c, c->rows_back) * tctl_spread_row(&c->dy) : 0;
    return (size_t)max_int(forward, back) + TCTL_CHANNELWISE_SLACK;
}

/* ---- y and dx ------------------------------------------------------------------------------------------ */

typedef struct job {
    const tctl_op_call *call;
    const tctl_conv_channelwise *c;
    const float *bias;
    int64_t height, rows, parts; /* of the result */
    int64_t samples;             /* images of a chunk, with `finish` */
    tctl_conv_finish_fn *finish;
} job;

/* A small batch is cut more finely. */
static job plan_job(const tctl_op_call *call, const tctl_conv_channelwise *c, int64_t height, int64_t rows)
{
    job j = {.call = call, .c = c, .height = height, .rows = rows};
    const int64_t wanted = (int64_t)tctl_pool_threads(call->pool) * CHUNKS_PER_THREAD;
    const int64_t parts = min_int(divide_up(wanted, call->n), height);
    if (parts > divide_up(height, rows))
        j.rows = divide_up(height, parts);
    j.parts = divide_up(height, j.rows);
    return j;
}

static void pack_weights(const tctl_op_call *call, const tctl_conv_channelwise *c)
{
    const int64_t stride = tctl_channelwise_stride(c->out);
    float *dst = call->shared;
    for (int64_t t = 0; t < c->n_terms; t++, dst += stride) {
        memcpy(dst, call->self->param[0] + t * c->out, (size_t)c->out * sizeof *dst);
        memset(dst + c->out, 0, (size_t)(stride - c->out) * sizeof *dst);
    }
}

/* Rows y0..y0+rows-1 of y of one image. */
static void forward_rows(const job *j, int64_t image, int64_t y0, int64_t rows, uint32_t thread)
{
    const tctl_conv_channelwise *c = j->c;
    const tctl_window *w = &c->window;
    const float *x = j->call->self->x[0] + image * w->height * w->width * c->in;
    float *band = tctl_op_scratch(j->call, thread);
    tctl_spread_band(&c->x, x, y0 * w->stride - w->pad, band_rows(c, rows), band);
    tctl_channelwise_row row = {
        .n = w->out_width,
        .channels = c->out,
        .n_terms = c->n_terms,
        .terms = c->terms,
        .x = band,
        .x_step = (ptrdiff_t)(w->stride * tctl_spread_pixel(&c->x)),
        .weights = j->call->shared,
        .y = j->call->self->y + (image * w->out_height + y0) * w->out_width * c->out,
        .y_step = (ptrdiff_t)c->out,
        .start = j->bias ? TCTL_GEMM_BIAS : TCTL_GEMM_ZERO,
        .bias = j->bias,
    };
    const tctl_channelwise *functions = tctl_channelwise_of(j->call->simd);
    for (int64_t i = 0; i < rows; i++, row.x += w->stride * tctl_spread_row(&c->x)) {
        (c->few ? functions->shared_row : functions->row)(&row);
        row.y += w->out_width * c->out;
    }
}

/* Chunk: some rows of y of one image. */
static void forward_chunk(void *arg, uint64_t chunk, uint32_t thread)
{
    const job *j = arg;
    const int64_t y0 = (int64_t)chunk % j->parts * j->rows;
    forward_rows(j, (int64_t)chunk / j->parts, y0, min_int(j->rows, j->height - y0), thread);
}

/* Chunk: some images. */
static void forward_images(void *arg, uint64_t chunk, uint32_t thread)
{
    const job *j = arg;
    const int64_t first = (int64_t)chunk * j->samples, last = min_int(first + j->samples, j->call->n);
    const int64_t size = j->height * j->c->window.out_width * j->c->out;
    for (int64_t i = first; i < last; i++) {
        for (int64_t y = 0; y < j->height; y += j->rows)
            forward_rows(j, i, y, min_int(j->rows, j->height - y), thread);
        j->finish(j->call, i, j->call->self->y + i * size);
    }
}

void tctl_conv_channelwise_forward(const tctl_op_call *call, const tctl_conv_channelwise *c,
                                   const float *bias, int64_t samples, tctl_conv_finish_fn *finish)
{
    job j = plan_job(call, c, c->window.out_height, c->rows);
    j.bias = bias;
    j.samples = samples;
    j.finish = finish;
    pack_weights(call, c);
    if (finish)
        tctl_pool_run(call->pool, (uint64_t)divide_up(call->n, samples), forward_images, &j);
    else
        tctl_pool_run(call->pool, (uint64_t)(call->n * j.parts), forward_chunk, &j);
}

/* In the order of terms_back; a row of weights is what one output channel of each group gives to all inputs. */
static void pack_weights_back(const tctl_op_call *call, const tctl_conv_channelwise *c)
{
    const tctl_window *w = &c->window;
    const int64_t stride = tctl_channelwise_stride(c->in), out_group = c->dy.planes, in_group = c->dy.columns;
    float *dst = call->shared;
    memset(dst, 0, (size_t)(c->n_terms_back * stride) * sizeof *dst);
    for (int64_t i = 0; i < w->stride * w->stride; i++) {
        const tctl_phase *p = &c->phases[i].phase;
        for (int64_t k = 0; k < c->phases[i].n_terms; k++, dst += stride) {
            const int64_t number = k / out_group;
            const int64_t tap_y = p->tap_y + number / p->n_tap_x * p->tap_step;
            const int64_t tap = tap_y * w->kernel + p->tap_x + number % p->n_tap_x * p->tap_step;
            const float *from = call->self->param[0] + tap * in_group * c->out + k % out_group;
            for (int64_t q = 0; q < c->in; q++)
                dst[q] = from[q % in_group * c->out + q / in_group * out_group];
        }
    }
}

/* Row y of dx: one product for each phase of its columns. `band` begins with row `first` of dy. */
static void input_row(const job *j, int64_t y, const float *band, int64_t first, float *dx)
{
    const tctl_conv_channelwise *c = j->c;
    const tctl_window *w = &c->window;
    const int64_t phase_y = (y + w->pad) % w->stride, pixel = tctl_spread_pixel(&c->dy);
    const float *from = band + ((y + w->pad) / w->stride - first) * tctl_spread_row(&c->dy);
    for (int64_t phase_x = 0; phase_x < w->stride; phase_x++) {
        const tctl_channelwise_phase *p = &c->phases[phase_y * w->stride + phase_x];
        const tctl_channelwise_row row = {
            .n = p->phase.width,
            .channels = c->in,
            .n_terms = p->n_terms,
            .terms = c->terms_back + p->first_term,
            .x = from + (c->dy.left + (p->phase.first_x + w->pad) / w->stride) * pixel,
            .x_step = (ptrdiff_t)pixel,
            .weights = j->call->shared + p->first_term * tctl_channelwise_stride(c->in),
            .y = dx + p->phase.first_x * c->in,
            .y_step = (ptrdiff_t)(w->stride * c->in),
            .start = j->call->self->add_dx[0] ? TCTL_GEMM_C : TCTL_GEMM_ZERO,
        };
        tctl_channelwise_of(j->call->simd)->row(&row);
    }
}

/* Chunk: some rows of dx of one image. */
static void input_chunk(void *arg, uint64_t chunk, uint32_t thread)
{
    const job *j = arg;
    const tctl_conv_channelwise *c = j->c;
    const tctl_window *w = &c->window;
    const int64_t image = (int64_t)chunk / j->parts, y0 = (int64_t)chunk % j->parts * j->rows;
    const int64_t y1 = min_int(y0 + j->rows, j->height);
    const int64_t first = first_read(w, y0), rows = last_read(w, y1 - 1) - first + 1;
    float *band = tctl_op_scratch(j->call, thread);
    tctl_spread_band(&c->dy, j->call->self->dy + image * w->out_height * w->out_width * c->out, first, rows,
                     band);
    float *dx = j->call->self->dx[0] + image * w->height * w->width * c->in;
    for (int64_t y = y0; y < y1; y++)
        input_row(j, y, band, first, dx + y * w->width * c->in);
}

void tctl_conv_channelwise_input_gradient(const tctl_op_call *call, const tctl_conv_channelwise *c)
{
    job j = plan_job(call, c, c->window.height, c->rows_back);
    pack_weights_back(call, c);
    tctl_pool_run(call->pool, (uint64_t)(call->n * j.parts), input_chunk, &j);
}

/* ---- dweight ------------------------------------------------------------------------------------------- */

/* Adds the terms of some rows of one sample. */
static void add_rows(const tctl_op_call *call, const tctl_conv_channelwise *c, int64_t sample, int64_t y,
                     int64_t rows, float *out, float *band)
{
    const tctl_window *w = &c->window;
    tctl_spread_band(&c->x, call->self->x[0] + sample * w->height * w->width * c->in, y * w->stride - w->pad,
                     band_rows(c, rows), band);
    const tctl_channelwise_sums sums = {
        .rows = rows,
        .n = w->out_width,
        .channels = c->out,
        .n_terms = c->n_terms,
        .terms = c->terms,
        .x = band,
        .x_row = (ptrdiff_t)(w->stride * tctl_spread_row(&c->x)),
        .x_step = (ptrdiff_t)(w->stride * tctl_spread_pixel(&c->x)),
        .dy = call->self->dy + (sample * w->out_height + y) * w->out_width * c->out,
        .sums = out,
    };
    tctl_channelwise_of(call->simd)->sums(&sums);
}

void tctl_conv_channelwise_leaf(const tctl_op_call *call, const tctl_conv_channelwise *c, int64_t first,
                                int64_t last, float *out, float *memory)
{
    const int64_t height = c->window.out_height, width = c->window.out_width;
    memset(out, 0, (size_t)(c->n_terms * c->out) * sizeof *out);
    for (int64_t row = first / width, end; row < last / width; row = end) {
        end = min_int((row / height + 1) * height, last / width);
        end = min_int(row + c->rows, end);
        add_rows(call, c, row / height, row % height, end - row, out, memory);
    }
}
