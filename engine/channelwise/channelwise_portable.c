/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of channelwise.h in plain C. */

#include "engine/channelwise/channelwise.h"
#include "engine/vector/portable.h"

#define CHANNELWISE_TABLE tctl_channelwise_portable

#include "engine/channelwise/channelwise_body.h"
