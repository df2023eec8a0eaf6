/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sinf and cosf of any float (fmath.h). The argument is reduced exactly for every exponent: x times a window of the
 * bits of 2/pi, in integers, as Payne and Hanek ("Radian reduction for trigonometric functions", SIGNUM 18, 1983). Not
 * vectorised: networks that want sines want them once, when they are made.
 */
#include "base/fmath.h"

#include "base/fmath_inline.h"

/* 32 zeros, then the first 256 bits of 2/pi. */
static const uint32_t two_over_pi[] = {0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                       0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u};

static uint32_t window(uint32_t first_bit)
{
    uint32_t word = first_bit / 32, shift = first_bit % 32;
    uint64_t two = (uint64_t)two_over_pi[word] << 32 | two_over_pi[word + 1];
    return (uint32_t)(two >> (32 - shift));
}

/*
 * |x| = quarter * pi/2 + r with |r| <= pi/4 (a little more where rounding decides), for finite x. With x = m 2^s, bits of
 * 2/pi that stand for multiples of 4 are left out; 96 that follow leave |r| an absolute error below 2^-68, and no float
 * but 0 comes nearer to a multiple of pi/2 than 2^-30.
 */
static double reduce(uint32_t magnitude, uint32_t *ret_quarter)
{
    double x = (double)tctl_float_of_bits(magnitude);
    *ret_quarter = 0;
    if (x <= 0x1.921fb6p-1)
        return x;
    uint32_t m = (magnitude & 0x7fffffu) | 0x800000u, at = 30 + (magnitude >> 23) - 150;
    uint64_t low = (uint64_t)m * window(at + 64), middle = (uint64_t)m * window(at + 32) + (low >> 32);
    uint32_t high = m * window(at) + (uint32_t)(middle >> 32);
    /* high:middle:low is x * 2/pi mod 4, times 2^94 */
    int64_t fraction = (int64_t)((uint64_t)(high & 0x3fffffffu) << 32 | (uint32_t)middle);
    uint32_t up = high >> 29 & 1;
    *ret_quarter = (high >> 30) + up;
    fraction -= (int64_t)up << 62;
    return ((double)fraction * 0x1p-62 + (double)(uint32_t)low * 0x1p-94) * 0x1.921fb54442d18p+0;
}

/* |error| <= 2e-14 relative */
static double sin_core(double r)
{
    double z = r * r, p = -0x1.aa283bea75579p-26;
    p = p * z + 0x1.71d9a9b87993fp-19;
    p = p * z - 0x1.a019fd9ae7168p-13;
    p = p * z + 0x1.1111110fd3b3cp-7;
    p = p * z - 0x1.555555555516bp-3;
    return r + r * z * p;
}

/* |error| <= 3e-13 */
static double cos_core(double r)
{
    double z = r * r, p = -0x1.2474cb416294ep-22;
    p = p * z + 0x1.a0129877a1cfcp-16;
    p = p * z - 0x1.6c16bae56f7d8p-10;
    p = p * z + 0x1.555555514f0e0p-5;
    p = p * z - 0x1.fffffffffe694p-2;
    return 1.0 + z * p;
}

/* quarter: 0 sin, 1 cos, 2 -sin, 3 -cos */
static float turn(double r, uint32_t quarter)
{
    double y = quarter & 1 ? cos_core(r) : sin_core(r);
    return (float)(quarter & 2 ? -y : y);
}

float tctl_sinf(float x)
{
    uint32_t bits = tctl_bits_of_float(x), quarter;
    if ((bits & 0x7fffffffu) >= 0x7f800000u)
        return tctl_float_of_bits(0x7fc00000u);
    double r = reduce(bits & 0x7fffffffu, &quarter);
    float y = turn(r, quarter);
    return bits >> 31 ? -y : y;
}

float tctl_cosf(float x)
{
    uint32_t bits = tctl_bits_of_float(x), quarter;
    if ((bits & 0x7fffffffu) >= 0x7f800000u)
        return tctl_float_of_bits(0x7fc00000u);
    double r = reduce(bits & 0x7fffffffu, &quarter);
    return turn(r, quarter + 1);
}
