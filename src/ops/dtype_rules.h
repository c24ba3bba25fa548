/* The words of ops.def for what an op does with the dtypes of its operands. */
#pragma once

enum {
    ANY = 0,
    TO_FLOAT = 1,   /* integers and bool become float32 */
    TO_BOOL = 2,    /* operands are cast to bool */
    NO_BOOL = 4,    /* an error */
    NO_COMPLEX = 8, /* likewise */
    BITS = 16,      /* integers and bool only */
    PART = 32,      /* of a complex number */
    SHIFT = 64,     /* bool is shifted as uint8 */
};
