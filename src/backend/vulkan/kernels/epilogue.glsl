// What follows a product element by element: the program of a step, linked into the module.
//
// Three functions of GLSL for which no kernel has another use mark the places: the optimiser lets
// them be, and jit/epilogue.c puts calls of the program there. They take and give floats; what is no
// float travels as its bits. Pipelines without a program never get here.

// The side inputs of an element, each in 32 bits.
struct Sides {
    vec4 lo, hi;
};

// Of row and column of the product; all rows of a batch are numbered.
Sides epilogue_sides(uint64_t args, uint row, uint col)
{
    vec4 at = uintBitsToFloat(uvec4(row, col, unpackUint2x32(args)));
    return Sides(reflect(at, at), refract(at, at, 0.0));
}

#if DT_IS_FLOAT
// What the program makes of a product, or of two. The highest bit of an address is a zero that no
// compiler knows.
float epilogue(float a, float b, Sides s, uint64_t args)
{
    float zero = uintBitsToFloat(unpackUint2x32(args).y >> 31);
    return faceforward(vec4(dt_round(a), dt_round(b), zero, 0.0), s.lo, s.hi).x;
}
#endif
