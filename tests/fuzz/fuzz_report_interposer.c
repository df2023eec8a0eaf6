/* SPDX-License-Identifier: Apache-2.0 */
/* The interposer's report: whatever it holds becomes members that a manifest may have, or is counted as malformed. */
#include <stdint.h>

#include "base/json.h"
#include "launcher/report_interposer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t lines_of(const uint8_t *data, size_t size)
{
    size_t n = size > 0 && data[size - 1] != '\n';
    for (size_t i = 0; i < size; i++)
        n += data[i] == '\n';
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tctl_interposer_report report = {0};
    tctl_buf text = TCTL_BUF_INIT;
    TCTL_BUG_IF(tctl_interposer_report_parse((const char *)data, size, &report, NULL) != TCTL_OK);
    TCTL_BUG_IF(tctl_json_canonical(report.interposer, &text, NULL) != TCTL_OK);
    TCTL_BUG_IF(tctl_json_canonical(report.uncontrolled, &text, NULL) != TCTL_OK);
    TCTL_BUG_IF(!json_is_array(report.objects));
    const char *const numbers[] = {"processes", "unreported", "malformed"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        json_int_t n = json_integer_value(json_object_get(report.interposer, numbers[i]));
        TCTL_BUG_IF(n < 0 || (uint64_t)n > lines_of(data, size));
    }
    tctl_buf_release(&text);
    tctl_interposer_report_release(&report);
    return 0;
}
