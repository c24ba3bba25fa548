// The input of a convolution as rows of a matrix, one per position of the output: row numbers and k
// to addresses. Reads conv_args; FLAGS say what the input has.
#define FLAG_DILATED 128u // zeros between its elements
#define FLAG_ONE_AXIS 256u
#define FLAG_TWO_AXES 512u // at most: the first axes that are missing cost nothing

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Unfold
{
    unfold_args v;
};

const bool DILATED = (FLAGS & FLAG_DILATED) != 0u;
const int FIRST_AXIS = (FLAGS & FLAG_ONE_AXIS) != 0u ? 2 : (FLAGS & FLAG_TWO_AXES) != 0u ? 1 : 0;

unfold_args unfold; // kept in registers as far as it is used

void unfold_init()
{
    unfold = Unfold(p.unfold).v;
}

uint quotient(divisor by, uint x)
{
    uint high, low;
    umulExtended(x, by.mul, high, low);
    return (high + x) >> by.shift;
}

// Where the first tap of a position is: in the dilated input, and its bytes from the first element;
// with DILATED those of its image.
struct Row {
    ivec3 at;
    int64_t bytes;
};

Row unfold_row(uint number)
{
    Row row = Row(ivec3(0), 0l);
    [[unroll]] for (int i = 2; i >= 0; i--) {
        if (i < FIRST_AXIS)
            continue;
        uint next = quotient(unfold.result[i], number);
        row.at[i] = int(number - next * unfold.result[i].d) * unfold.stride[i] + unfold.start[i];
        number = next;
        if (!DILATED)
            row.bytes += int64_t(row.at[i]) * unfold.x_stride[i];
    }
    row.bytes += int64_t(number) * unfold.image_stride;
    return row;
}

// What k adds to that: the steps to its tap, and bytes; with DILATED those of its channel.
struct Tap {
    ivec3 step;
    int64_t bytes;
};

Tap unfold_tap(uint k)
{
    uint number = quotient(unfold.c, k);
    Tap tap = Tap(ivec3(0), int64_t((k - number * unfold.c.d) * DT_BYTES));
    [[unroll]] for (int i = 2; i >= 0; i--) {
        if (i < FIRST_AXIS)
            continue;
        uint next = i > FIRST_AXIS ? quotient(unfold.kernel[i], number) : 0u;
        tap.step[i] = int(number - next * unfold.kernel[i].d) * unfold.step[i];
        number = next;
        if (!DILATED)
            tap.bytes += int64_t(tap.step[i]) * unfold.x_stride[i];
    }
    return tap;
}

// False where a zero stands; else where the element is, in bytes.
bool unfold_find(Row row, Tap tap, out int64_t bytes)
{
    bool inside = true;
    bytes = row.bytes + tap.bytes;
    [[unroll]] for (int i = 0; i < 3; i++) {
        if (i < FIRST_AXIS)
            continue;
        int at = row.at[i] + tap.step[i];
        if (DILATED) {
            uint place = quotient(unfold.dilation[i], uint(max(at, 0)));
            inside = inside && at >= 0 && place * unfold.dilation[i].d == uint(at);
            at = int(place);
            bytes += int64_t(at) * unfold.x_stride[i];
        }
        inside = inside && uint(at) < uint(unfold.size[i]);
    }
    return inside;
}
