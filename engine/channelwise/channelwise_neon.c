/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of channelwise.h for AArch64, whose baseline has fused multiply-add. */
#include "engine/channelwise/channelwise.h"

#if defined(__aarch64__)
#include "engine/vector/neon.h"

#define CHANNELWISE_TABLE tctl_channelwise_neon

#include "engine/channelwise/channelwise_body.h"
#endif
