/* Complex functions on vec2(real, imaginary), over math.glsl. Branch cuts are those of C and NumPy.
 * Intermediate results are scaled by powers of two where they would overflow or vanish. */

/* Exponent of the larger component, as a scale that brings it into [1, 2). */
int exponent_c64(const vec2 z)
{
    uint x = floatBitsToUint(z.x) & ~SIGN_BIT;
    uint y = floatBitsToUint(z.y) & ~SIGN_BIT;

    return clamp(int(max(x, y) >> 23) - 127, -126, 126);
}

float hypot_c64(const vec2 z)
{
    int e = exponent_c64(z);
    vec2 w = z * pow2(-e);

    if (is_inf(z.x) || is_inf(z.y))
        return inf_f32();
    return sqrt_f32(w.x * w.x + w.y * w.y) * pow2(e);
}

/* i z and -i z */
vec2 turn_left(const vec2 z)
{
    return vec2(-z.y, z.x);
}

vec2 turn_right(const vec2 z)
{
    return vec2(z.y, -z.x);
}

bool is_nan_c64(const vec2 z)
{
    return is_nan(z.x) || is_nan(z.y);
}

vec2 multiply_c64(const vec2 a, const vec2 b)
{
    return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

vec2 divide_c64(const vec2 a, const vec2 b)
{
    int ea = exponent_c64(a);
    int eb = exponent_c64(b);
    vec2 n = a * pow2(-ea);
    vec2 d = b * pow2(-eb);
    float q = d.x * d.x + d.y * d.y;

    if (q == 0.0)
        return vec2(divide_f32(a.x, 0.0), divide_f32(a.y, 0.0));
    if (is_inf(q) && is_finite(a.x) && is_finite(a.y)) {
        d = vec2(with_sign(is_inf(b.x) ? 1.0 : 0.0, b.x), with_sign(is_inf(b.y) ? 1.0 : 0.0, b.y));
        return 0.0 * vec2(n.x * d.x + n.y * d.y, n.y * d.x - n.x * d.y);
    }
    return vec2(scale2((n.x * d.x + n.y * d.y) / q, ea - eb),
                scale2((n.y * d.x - n.x * d.y) / q, ea - eb));
}

vec2 abs_c64(const vec2 z)
{
    return vec2(hypot_c64(z), 0.0);
}

vec2 sign_c64(const vec2 z)
{
    return z.x == 0.0 && z.y == 0.0 ? z : divide_c64(z, vec2(hypot_c64(z), 0.0));
}

vec2 exp_c64(const vec2 z)
{
    int s = z.x > 80.0 ? 64 : 0;
    float m = exp_scaled(z.x, -s);

    if (z.y == 0.0)
        return vec2(exp_f32(z.x), z.y);
    if (!is_finite(z.y) && is_inf(z.x))
        return z.x < 0.0 ? vec2(0.0) : vec2(z.x, nan_f32());
    return vec2(m * cos_f32(z.y), m * sin_f32(z.y)) * pow2(s);
}

/* log|z| without losing the digits of a modulus near 1. */
float log_hypot(const vec2 z)
{
    float x = max(abs(z.x), abs(z.y));
    float y = min(abs(z.x), abs(z.y));
    int e = exponent_c64(z);

    if (x > 0.5 && x < 2.0)
        return 0.5 * log1p_f32((x - 1.0) * (x + 1.0) + y * y);
    if (is_inf(z.x) || is_inf(z.y))
        return inf_f32();
    return log_f32(hypot_c64(z * pow2(-e))) + float(e) * 0.693147182;
}

vec2 log_c64(const vec2 z)
{
    return vec2(log_hypot(z), arctan2_f32(z.y, z.x));
}

vec2 log2_c64(const vec2 z)
{
    return log_c64(z) * 1.44269502;
}

vec2 log10_c64(const vec2 z)
{
    return log_c64(z) * 0.434294492;
}

vec2 log1p_c64(const vec2 z)
{
    float r;

    if (max(abs(z.x), abs(z.y)) < 0.5)
        r = 0.5 * log1p_f32(z.x * (2.0 + z.x) + z.y * z.y);
    else
        r = log_hypot(vec2(z.x + 1.0, z.y));
    return vec2(r, arctan2_f32(z.y, z.x + 1.0));
}

vec2 sqrt_c64(const vec2 z)
{
    if (z.x == 0.0 && z.y == 0.0)
        return vec2(0.0, z.y);
    if (is_inf(z.y))
        return vec2(inf_f32(), z.y);
    int e = exponent_c64(z) / 2 * 2;
    vec2 w = z * pow2(-e);
    float t = sqrt_f32(0.5 * (abs(w.x) + hypot_c64(w)));
    float u = is_inf(t) ? 0.0 : 0.5 * w.y / t;
    vec2 r = z.x < 0.0 ? vec2(abs(u), with_sign(t, z.y)) : vec2(t, with_sign(u, z.y));
    return r * pow2(e / 2);
}

vec2 rsqrt_c64(const vec2 z)
{
    return divide_c64(vec2(1.0, 0.0), sqrt_c64(z));
}

vec2 square_c64(const vec2 z)
{
    return multiply_c64(z, z);
}

vec2 power_c64(const vec2 a, const vec2 b)
{
    if (b.x == 0.0 && b.y == 0.0)
        return vec2(1.0, 0.0);
    if (a.x == 0.0 && a.y == 0.0)
        return is_nan_c64(b) ? vec2(nan_f32()) : vec2(0.0);
    return exp_c64(multiply_c64(b, log_c64(a)));
}

vec2 sinh_c64(const vec2 z)
{
    return vec2(sinh_f32(z.x) * cos_f32(z.y), cosh_f32(z.x) * sin_f32(z.y));
}

vec2 cosh_c64(const vec2 z)
{
    return vec2(cosh_f32(z.x) * cos_f32(z.y), sinh_f32(z.x) * sin_f32(z.y));
}

vec2 tanh_c64(const vec2 z)
{
    if (abs(z.x) > 10.0) {
        float e = exp_f32(-2.0 * abs(z.x));
        return vec2(with_sign(1.0, z.x), 2.0 * sin_f32(2.0 * z.y) * e);
    }
    float t = tan_f32(z.y);
    float b = 1.0 + t * t;
    float s = sinh_f32(z.x);
    float d = 1.0 + b * s * s;
    if (is_inf(d))
        return vec2(sqrt_f32(1.0 + s * s) / s, 1.0 / (t * s * s));
    return vec2(b * sqrt_f32(1.0 + s * s) * s, t) / d;
}

vec2 sin_c64(const vec2 z)
{
    return turn_right(sinh_c64(turn_left(z)));
}

vec2 cos_c64(const vec2 z)
{
    return cosh_c64(turn_left(z));
}

vec2 tan_c64(const vec2 z)
{
    return turn_right(tanh_c64(turn_left(z)));
}

/* W. Kahan's forms: square roots of 1 - z and 1 + z keep the digits near the branch points. */
vec2 arcsin_c64(const vec2 z)
{
    vec2 a = sqrt_c64(vec2(1.0 - z.x, -z.y));
    vec2 b = sqrt_c64(vec2(1.0 + z.x, z.y));

    return vec2(arctan2_f32(z.x, a.x * b.x - a.y * b.y), arcsinh_f32(a.x * b.y - a.y * b.x));
}

vec2 arccos_c64(const vec2 z)
{
    vec2 a = sqrt_c64(vec2(1.0 - z.x, -z.y));
    vec2 b = sqrt_c64(vec2(1.0 + z.x, z.y));

    return vec2(2.0 * arctan2_f32(a.x, b.x), arcsinh_f32(b.x * a.y - b.y * a.x));
}

vec2 arccosh_c64(const vec2 z)
{
    vec2 a = sqrt_c64(vec2(z.x - 1.0, z.y));
    vec2 b = sqrt_c64(vec2(z.x + 1.0, z.y));

    return vec2(arcsinh_f32(a.x * b.x + a.y * b.y), 2.0 * arctan2_f32(a.y, b.x));
}

vec2 arcsinh_c64(const vec2 z)
{
    return turn_right(arcsin_c64(turn_left(z)));
}

vec2 arctanh_c64(const vec2 z)
{
    float x = abs(z.x);
    float r = divide_f32(4.0 * x, (1.0 - x) * (1.0 - x) + z.y * z.y);
    float i = arctan2_f32(2.0 * z.y, (1.0 - x) * (1.0 + x) - z.y * z.y);

    return vec2(with_sign(0.25 * log1p_f32(r), z.x), 0.5 * i);
}

vec2 arctan_c64(const vec2 z)
{
    return turn_right(arctanh_c64(turn_left(z)));
}

/* Ordered by the real parts, then by the imaginary parts. */
bool greater_c64(const vec2 a, const vec2 b)
{
    return a.x > b.x || (a.x == b.x && a.y > b.y);
}

vec2 log_add_exp_c64(const vec2 a, const vec2 b)
{
    vec2 hi = greater_c64(a, b) ? a : b;
    vec2 lo = greater_c64(a, b) ? b : a;

    if (is_nan_c64(a) || is_nan_c64(b))
        return vec2(nan_f32());
    if (is_inf(lo.x) || is_inf(hi.x))
        return hi;
    return hi + log1p_c64(exp_c64(lo - hi));
}
