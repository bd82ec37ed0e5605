// The one function of libtycho_cuda.so, declared for it and for those who open it with dlopen.
#pragma once

namespace tycho {

struct KernelTable;
struct NcclTable;
struct DriverTable;
struct LibraryProducts;

using RegisterKernels = void(const KernelTable*);
using RegisterNccl = void(const NcclTable*);
using RegisterDriver = void(const DriverTable*);
using RegisterProducts = void(const LibraryProducts*);

inline constexpr const char* kCudaInit = "tycho_cuda_init";

}  // namespace tycho

/// Called once after dlopen. Calls the functions with tables that live as long as the library.
extern "C" __attribute__((visibility("default"))) void tycho_cuda_init(tycho::RegisterKernels*,
                                                                       tycho::RegisterNccl*,
                                                                       tycho::RegisterDriver*,
                                                                       tycho::RegisterProducts*);
