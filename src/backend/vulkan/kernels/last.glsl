// Which of several workgroups is the last: it can go on with what all of them left in memory.
#extension GL_KHR_memory_scope_semantics : require

layout(buffer_reference, scalar, buffer_reference_align = 4) coherent buffer CounterBuf
{
    uint v[];
};

shared uint is_last;

// All lanes of the workgroup see each other's writes to memory; then one of them makes what it sees
// known to the device, and learns what the device knows. A barrier of the device in every lane would
// take longer than all the rest.
void meet()
{
    controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup,
                   gl_StorageSemanticsBuffer | gl_StorageSemanticsShared,
                   gl_SemanticsAcquireRelease);
}

void settle()
{
    memoryBarrier(gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease);
}

// One lane says that its workgroup has written what it leaves in coherent memory. True for the last of
// n to say so with this counter, which is 0 before and after: that lane sees what all of them wrote.
bool arrive_last(uint n, uint64_t counter)
{
    CounterBuf c = CounterBuf(counter);
    settle();
    bool last = atomicAdd(c.v[0], 1u) == n - 1u;
    settle();
    if (last)
        c.v[0] = 0u;
    return last;
}

// The same for all lanes of a workgroup, in uniform control flow.
bool is_last_of(uint n, uint64_t counter)
{
    meet();
    if (gl_LocalInvocationIndex == 0u)
        is_last = arrive_last(n, counter) ? 1u : 0u;
    meet();
    return is_last != 0u;
}
