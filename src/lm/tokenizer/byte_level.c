#include "lm/tokenizer/byte_level.h"

#include "base/mem.h"

static bool prints(int byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

enum err byte_level_add(struct str *out, const char *bytes, size_t n)
{
    /* 0 to 0x20 are not printable, then 0x7f to 0xa0 and 0xad. */
    enum err err = VEC_RESERVE(out, 2 * n);

    for (size_t i = 0; err == ERR_OK && i < n; i++) {
        unsigned b = (unsigned char)bytes[i];
        unsigned cp = prints((int)b) ? b : b <= 0x20 ? 0x100 + b : b == 0xad ? 0x143 : b + 0xa2;
        out->n += u8_put(out->v + out->n, cp);
    }
    return err;
}

int byte_level_byte(uint32_t cp)
{
    if (cp < 0x100)
        return prints((int)cp) ? (int)cp : -1;
    if (cp <= 0x120)
        return (int)cp - 0x100;
    if (cp <= 0x142)
        return (int)cp - 0xa2;
    return cp == 0x143 ? 0xad : -1;
}
