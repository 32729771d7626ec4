// nvcc: -arch=sm_75; -arch=sm_90
// Bindless textures and surfaces: 1-D to 3-D, layered, cubemap, gather, gradients, levels.
__global__ void fetches(cudaTextureObject_t t, float4 *out, float x, float y) {
    int i = threadIdx.x;
    float4 r = tex2D<float4>(t, x + i, y);
    r.x += tex1D<float>(t, x) + tex1Dfetch<float>(t, i);
    r.y += tex3D<float2>(t, x, y, x).y + tex2DLod<float>(t, x, y, 2.0f);
    r.z += tex2DLayered<float>(t, x, y, i) + texCubemap<float>(t, x, y, 1.0f);
    r.w += tex2Dgather<float4>(t, x, y, 1).w + tex2DGrad<float>(t, x, y, make_float2(1, 0), make_float2(0, 1));
    int4 n = tex2D<int4>(t, y, x);
    uchar4 b = tex1D<uchar4>(t, y);
    out[i] = make_float4(r.x + n.x, r.y + n.y + b.x, r.z + b.w, r.w);
}

__global__ void surfaces(cudaSurfaceObject_t s, int *out) {
    int i = threadIdx.x;
    int v = surf2Dread<int>(s, i * 4, 1) + surf1Dread<unsigned char>(s, i, cudaBoundaryModeZero);
    short4 w = surf3Dread<short4>(s, i * 8, 1, 2, cudaBoundaryModeClamp);
    surf2Dwrite(v + w.x, s, i * 4, 2);
    surf1Dwrite(make_float2(1.0f, v), s, i * 8, cudaBoundaryModeTrap);
    surf2DLayeredwrite((unsigned short)w.z, s, i * 2, 1, 3);
    out[i] = v;
}
