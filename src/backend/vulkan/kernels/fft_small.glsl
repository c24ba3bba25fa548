// Transforms of a few numbers, forward: v[k] = sum over j of v[j] exp(-2 pi i j k / r).

vec2 times(const vec2 a, const vec2 b)
{
    return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// -i z
vec2 turned(const vec2 z)
{
    return vec2(z.y, -z.x);
}

void dft2(inout vec2 a, inout vec2 b)
{
    vec2 d = a - b;
    a += b;
    b = d;
}

void dft4(inout vec2 a, inout vec2 b, inout vec2 c, inout vec2 d)
{
    vec2 s = a + c;
    vec2 t = a - c;
    vec2 u = b + d;
    vec2 w = turned(b - d);
    a = s + u;
    b = t + w;
    c = s - u;
    d = t - w;
}

const float ROOT_HALF = 0.707106781;

void dft8(inout vec2 a, inout vec2 b, inout vec2 c, inout vec2 d, inout vec2 e, inout vec2 f,
          inout vec2 g, inout vec2 h)
{
    dft4(a, c, e, g);
    dft4(b, d, f, h);
    d = ROOT_HALF * vec2(d.x + d.y, d.y - d.x);
    f = turned(f);
    h = ROOT_HALF * vec2(h.y - h.x, -h.x - h.y);
    vec2 s1 = c + d;
    vec2 s2 = e + f;
    vec2 s3 = g + h;
    vec2 d0 = a - b;
    vec2 d1 = c - d;
    vec2 d2 = e - f;
    vec2 d3 = g - h;
    a = a + b;
    b = s1;
    c = s2;
    d = s3;
    e = d0;
    f = d1;
    g = d2;
    h = d3;
}
