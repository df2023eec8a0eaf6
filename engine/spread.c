/* SPDX-License-Identifier: Apache-2.0 */
/* See spread.h. */
#include "engine/spread.h"

#include <string.h>

/* One channel for each channel of the result: the planes of a pixel are its channels, sorted otherwise. */
static void sort_pixels(const tctl_spread *s, const float *from, float *dst)
{
    const int64_t groups = s->groups, planes = s->planes;
    for (int64_t x = 0; x < s->width; x++, from += groups * planes) {
        for (int64_t j = 0; j < planes; j++) {
            for (int64_t g = 0; g < groups; g++)
                *dst++ = from[g * planes + j];
        }
    }
}

static void repeat_pixels(const tctl_spread *s, const float *from, float *dst)
{
    const int64_t groups = s->groups, planes = s->planes, columns = s->columns;
    for (int64_t x = 0; x < s->width; x++, from += groups * planes) {
        for (int64_t j = 0; j < planes; j++) {
            for (int64_t g = 0; g < groups; g++) {
                const float value = from[g * planes + j];
                for (int64_t c = 0; c < columns; c++)
                    *dst++ = value;
            }
        }
    }
}

static float *zero(float *dst, int64_t n)
{
    memset(dst, 0, (size_t)n * sizeof *dst);
    return dst + n;
}

void tctl_spread_band(const tctl_spread *s, const float *image, int64_t first, int64_t rows, float *dst)
{
    const int64_t pixel = tctl_spread_pixel(s), size = s->width * s->groups * s->planes;
    for (int64_t y = first; y < first + rows; y++) {
        if (y < 0 || y >= s->height) {
            dst = zero(dst, tctl_spread_row(s));
            continue;
        }
        dst = zero(dst, s->left * pixel);
        if (s->columns == 1 && (s->planes == 1 || s->groups == 1))
            memcpy(dst, image + y * size, (size_t)size * sizeof *dst);
        else if (s->columns == 1)
            sort_pixels(s, image + y * size, dst);
        else
            repeat_pixels(s, image + y * size, dst);
        dst = zero(dst + s->width * pixel, s->right * pixel);
    }
}
