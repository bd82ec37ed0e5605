// fp32 and the 16-bit floats of safetensors, both ways.
#pragma once
#include <cstdint>
#include <string>

namespace tycho {

/// Returns true for "F32", "BF16" and "F16", the dtypes that weights can have.
bool is_float_dtype(const std::string& dtype);
/// Converts n elements of a dtype to fp32, exactly. `from` need not be aligned.
void widen_floats(const std::string& dtype, const void* from, float* to, int64_t n);
/// Converts n elements of fp32 to a dtype, rounded to nearest even. Returns false when a finite number became
/// infinite.
bool narrow_floats(const std::string& dtype, const float* from, void* to, int64_t n);

}  // namespace tycho
