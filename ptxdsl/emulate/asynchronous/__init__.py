"""Operations that complete after their instruction: cp.async, TMA, wgmma, st.async.

- copies, bulk, remote: cp.async; bulk and tensor copies; st.async
- products, readings: wgmma; pending reads by the async proxy
- swizzles: the swizzle of each tile in shared memory
"""
