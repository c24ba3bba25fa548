#version 450
#extension GL_EXT_shader_realtime_clock : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Y { uvec2 y; };

void main()
{
    y = clockRealtime2x32EXT();
}
