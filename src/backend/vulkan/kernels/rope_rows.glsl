// Rows of heads that are normed (RMSNorm), rotated by their position, or both, each step rounded as
// the single op rounds it.
//
// The includer includes math.glsl and norm_rows.glsl, and defines
//   INVERSE, FREQS, TURNS, NORMS   constants: as ROPE_<name>; NORMS false: no row is normed
//   TURN_TABLE, TURN_STRIDE        address of the table of turns, elements between frequencies
//   TURN_PAIRS                     pairs that turn
//   ROW_SIZE                       elements of a row, not a constant: drivers divide by those
//                                  with other roundings
BUF(TurnBuf, vec2, 8);

// The row of this team.
RowShare share;
rope_part part;
uint64_t src_row;
bool is_rotated;
float factor;     // of the norm
uint position;    // row of the table of turns
float angle_unit; // position times scale

// ---- norms ----

float norm_factor(float squares, uint team)
{
    return inversesqrt(team_join(squares, 1u, team) / float(ROW_SIZE) + part.eps);
}

bool row_is_normed()
{
    return NORMS && (part.flags & ROPE_PART_NORM) != 0u;
}

VAL weighed(VAL v, VAL w)
{
    v *= factor;
    return (part.flags & ROPE_PART_WEIGHT) != 0u ? dt_round(v) * w : v;
}

// ---- turns ----

// As angle_reduce, but a driver simplifies sums where nothing forbids it: rounding by name, precise
// differences. The products are exact.
angle quarters(float x)
{
    if (abs(x) > 8192.0)
        return angle_large(x);
    float k = roundEven(x * 0.636619747);
    precise float high = (x - k * 1.5703125) - k * 0.000483751297;
    precise float r = (high - k * 7.54953362e-8) - k * 2.56334407e-12;
    angle z;
    z.r = r;
    z.q = int(k);
    return z;
}

// Cosine and sine for a pair.
vec2 turn_of(uint pair)
{
    vec2 turn;
    if (TURNS) {
        turn = AT(TurnBuf, TURN_TABLE, 8, uint64_t(position) * TURN_PAIRS + pair);
    } else {
        float f = AT(F32Buf, TURN_TABLE, 4, int64_t(pair) * TURN_STRIDE);
        angle a = quarters(angle_unit * (FREQS ? divide_f32(1.0, f) : f));
        turn = vec2(sin_angle(a.r, a.q + 1), sin_angle(a.r, a.q));
    }
    return INVERSE ? vec2(turn.x, -turn.y) : turn;
}

vec2 turn_by(VAL a, VAL b, vec2 t)
{
    precise float x = a * t.x - b * t.y;
    precise float y = a * t.y + b * t.x;
    return vec2(x, y);
}

// ---- rows that their team holds: a lane has a block of each half, and they turn with each other ----

// All that the row needs is on its way before anything waits for it.
vec2 held_turn[DT_PER16];
uvec4 held_weight[2];

void load_held()
{
    uint e = share.lane * DT_PER16;
    row_load(share, src_row, 1, 0u);
    held_weight[0] = held_weight[1] = uvec4(0u);
    if ((part.flags & ROPE_PART_WEIGHT) != 0u && share.lane < share.lanes) {
        held_weight[0] = AT(U128Buf, part.weight, DT_BYTES, e);
        held_weight[1] = AT(U128Buf, part.weight, DT_BYTES, e + TURN_PAIRS);
    }
    if (is_rotated)
        [[unroll]] for (int i = 0; i < DT_PER16; i++)
            held_turn[i] = turn_of(min(e + uint(i), TURN_PAIRS - 1u));
}

void get_held(const int k, out VAL v[DT_PER16])
{
    dt_unpack(row_words[k], v);
    if (!row_is_normed())
        return;
    VAL w[DT_PER16];
    dt_unpack(held_weight[k], w);
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        v[i] = dt_round(weighed(v[i], w[i]));
}

// The lane's two blocks of the result.
void turn_held(out VAL a[DT_PER16], out VAL b[DT_PER16])
{
    get_held(0, a);
    get_held(1, b);
    if (is_rotated)
        [[unroll]] for (int i = 0; i < DT_PER16; i++) {
            vec2 v = turn_by(a[i], b[i], held_turn[i]);
            a[i] = v.x;
            b[i] = v.y;
        }
}
