#version 450
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
layout(local_size_x = 32) in;
shared uvec4 tile[64];
#define MATRIX coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
void main()
{
    MATRIX m = MATRIX(1.0);
    MATRIX factor;

    coopMatLoad(factor, tile, 0u, 4u, gl_CooperativeMatrixLayoutRowMajor);
    m = m * factor;
    coopMatStore(m, tile, 0u, 4u, gl_CooperativeMatrixLayoutRowMajor);
}
