struct Program {
  GpuRun run;
  GpuArrayMemory arrays[5];
  float constants[8];

  template <int width>
  __device__ void elements(long long row, long long at) const {
    float a0[width];
    read<float>(GpuArrayMemory{run.master, 0}, row, at, a0);
    float a1[width];
    read<float>(arrays[1], row, at, a1);
    float a2[width];
    read<float>(arrays[2], row, at, a2);
    float a3[width];
    read<float>(arrays[3], row, at, a3);
    float a4[width];
    read_number<float>(arrays[4], row, a4);
    const float c0 = constants[0];
    const float c1 = constants[1];
    const float c2 = constants[2];
    const float c3 = constants[3];
    const float c4 = constants[4];
    const float c5 = constants[5];
    const float c6 = constants[6];
    const float c7 = constants[7];
#pragma unroll
    for (int k = 0; k < width; ++k) {
      float t0;
      t0 = a1[k] * a4[k];
      a2[k] = a2[k] * c0 + t0 * c1;
      t0 = (t0 * t0) * c2;
      a3[k] = (a3[k] * c3) + t0;
      t0 = sqrtf(a3[k]);
      t0 = (t0 * c4) + c5;
      t0 = (a2[k] / t0) * c6;
      a0[k] = (a0[k] * c7) - t0;
    }
    write<float>(a0, GpuArrayMemory{run.master, 0}, row, at);
    write<Bf16>(a0, arrays[0], row, at);
    write<float>(a2, arrays[2], row, at);
    write<float>(a3, arrays[3], row, at);
  }
};

}  // namespace tycho

extern "C" __global__ void tycho_program(const tycho::Program program) {
  if (program.run.packs)
    tycho::over_elements<4>(program);
  else
    tycho::over_elements<1>(program);
}
