#version 450
#extension GL_EXT_integer_dot_product : require
layout(local_size_x = 32) in;
layout(push_constant) uniform Push
{
    int a, b;
};
shared int c;
void main()
{
    c = dotPacked4x8EXT(a, b);
}
