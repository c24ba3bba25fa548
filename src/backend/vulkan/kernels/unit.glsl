// Kernels that move elements without looking at them: UNIT and UnitBuf for UNIT_BYTES bytes.
#if UNIT_BYTES == 1
#define UNIT uint8_t
#define UnitBuf U8Buf
#elif UNIT_BYTES == 2
#define UNIT uint16_t
#define UnitBuf U16Buf
#elif UNIT_BYTES == 4
#define UNIT uint
#define UnitBuf U32Buf
#elif UNIT_BYTES == 8
#define UNIT uint64_t
#define UnitBuf U64Buf
#else
#define UNIT uvec4
#define UnitBuf U128Buf
#endif
