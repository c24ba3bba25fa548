// Positions from arrays of any integer dtype.
BUF(I8Buf, int8_t, 1);
BUF(I16Buf, int16_t, 2);
BUF(I64Buf, int64_t, 8);

int64_t read_index(uint64_t address, uint code, int64_t i)
{
    switch (code) {
    case GATHER_U8: return int64_t(AT(U8Buf, address, 1, i));
    case GATHER_U16: return int64_t(AT(U16Buf, address, 2, i));
    case GATHER_U32: return int64_t(AT(U32Buf, address, 4, i));
    case GATHER_I8: return int64_t(AT(I8Buf, address, 1, i));
    case GATHER_I16: return int64_t(AT(I16Buf, address, 2, i));
    case GATHER_I32: return int64_t(AT(I32Buf, address, 4, i));
    case GATHER_U64: return int64_t(min(AT(U64Buf, address, 8, i), 0x7ffffffffffffffful));
    default: return AT(I64Buf, address, 8, i);
    }
}

// A negative index counts from the end; what lies outside is moved to the nearest end.
int64_t place_index(int64_t i, int64_t dim, int64_t last)
{
    return clamp(i + (dim & (i >> 63)), 0l, last);
}
