/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images spread out for products channel by channel: for each of its `planes`, the channels of a group, a vector over all
 * channels of the result, in which channel c has what it reads: channel c / columns * planes + plane of the image. So a
 * convolution with groups multiplies vectors along channels (engine/channelwise). In a depthwise one, a spread image is
 * the image.
 */
#ifndef TCTL_ENGINE_SPREAD_H
#define TCTL_ENGINE_SPREAD_H

#include <stddef.h>
#include <stdint.h>

typedef struct tctl_spread {
    int64_t height, width, groups;
    int64_t planes;      /* channels of the image in a group */
    int64_t columns;     /* channels of the result in a group */
    int64_t left, right; /* zeros beside each row */
} tctl_spread;

/* Floats of a position and of a row. */
static inline int64_t tctl_spread_pixel(const tctl_spread *s)
{
    return s->planes * s->groups * s->columns;
}
static inline int64_t tctl_spread_row(const tctl_spread *s)
{
    return (s->left + s->width + s->right) * tctl_spread_pixel(s);
}

/* Rows first..first+rows-1 of one image: dst[rows][left + width + right][planes][groups * columns]. Rows outside the
 * image are zeros. */
void tctl_spread_band(const tctl_spread *, const float *image, int64_t first, int64_t rows, float *dst);

#endif
