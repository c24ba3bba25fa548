#include "support/room.h"

#include "support/testing.h"

static size_t info_number(const struct be *device, const char *key)
{
    const struct be_info_row *rows = NULL;
    size_t n = 0;

    assert_ok(device->device_info(&rows, &n, 0));
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].key, key) == 0)
            return (size_t)rows[i].number;
    fail_msg("the device does not say its %s", key);
    return 0;
}

bool room_on(const struct be *device, size_t buffer, size_t total)
{
    size_t most = info_number(device, "max_buffer_length"), memory = device->memory_size();

    if (buffer <= most && total <= memory)
        return true;
    print_message(
        "not run: asked for buffers of %zu bytes and %zu bytes in all; the device has %zu "
        "and %zu\n",
        buffer, total, most, memory);
    return false;
}
