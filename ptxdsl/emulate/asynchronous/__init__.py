"""Operations that complete after their instruction: cp.async, TMA, wgmma, st.async.

- copies, bulk, remote: cp.async; bulk and tensor copies; st.async
- products, readings: wgmma; what the async proxy reads meanwhile
- swizzles: the swizzle of each tile in shared memory
"""
