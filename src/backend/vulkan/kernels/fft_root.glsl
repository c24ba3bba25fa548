// Roots of unity. The angle is reduced as an integer, so that it is at most an eighth of a turn before
// anything is rounded.

// exp(-2 pi i k / n) for k <= n < 2^29, with 1 / n.
vec2 root_by(const uint k, const uint n, const float inverse)
{
    uint a = 8u * k;
    bool is_low = a > 4u * n;
    a = is_low ? 8u * n - a : a;
    bool is_left = a > 2u * n;
    a = is_left ? 4u * n - a : a;
    bool is_steep = a > n;
    a = is_steep ? 2u * n - a : a;
    float x = float(a) * inverse * 0.785398163;
    float c = cos_poly(x);
    float s = sin_poly(x);
    vec2 z = is_steep ? vec2(s, c) : vec2(c, s);

    return vec2(is_left ? -z.x : z.x, is_low ? z.y : -z.y);
}

vec2 root(const uint k, const uint n)
{
    return root_by(k, n, divide_f32(1.0, float(n)));
}

// What z[0], of n numbers, and z[n - k] tell of the spectrum of 2 n real numbers at k <= n, where a is
// z[k % n] and b is z[(n - k) % n].
vec2 spectrum_of_pairs(const vec2 a, const vec2 b, const uint k, const uint n)
{
    vec2 even = 0.5 * vec2(a.x + b.x, a.y - b.y);
    vec2 odd = 0.5 * vec2(a.y + b.y, b.x - a.x);

    return even + times(root(k, 2u * n), odd);
}
