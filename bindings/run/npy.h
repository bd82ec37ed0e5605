// Tensors as NumPy's .npy files. Torch-free.
#pragma once
#include <string>

#include "trainer/base/file_ops.h"
#include "trainer/session/tensor_view.h"

namespace tycho {

/// Returns the bytes of an .npy file, format 1.0: integers as int32 or int64, all other numbers as float32.
std::string npy_bytes(const TensorView& tensor);
/// Writes npy_bytes to a file that must not exist. Throws Error (kUsage) when the path does not end in .npy
/// or exists, (kStorage) when it cannot be written.
void save_npy(FileOps& files, const TensorView& tensor, const std::string& path);

}  // namespace tycho
