// Writes NumPy's format, as numpy.lib.format describes it.
#include "bindings/run/npy.h"

#include <cstring>
#include <filesystem>

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr size_t kAlignment = 64;

template <class T>
void append(std::string& bytes, const std::vector<double>& values) {
  for (const double value : values) {
    const T number = static_cast<T>(value);
    char raw[sizeof number];
    std::memcpy(raw, &number, sizeof number);
    bytes.append(raw, sizeof number);
  }
}

std::string header(const TensorView& tensor, const char* type) {
  std::string shape;
  for (const int64_t size : tensor.shape()) shape += fmt::format("{}, ", size);
  if (tensor.shape().size() > 1) shape.resize(shape.size() - 2);
  if (tensor.shape().size() == 1) shape.resize(shape.size() - 1);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, shape);
  constexpr size_t kBefore = 10;  // magic, version, length
  text.append(kAlignment - (kBefore + text.size() + 1) % kAlignment, ' ');
  return text + "\n";
}

}  // namespace

std::string npy_bytes(const TensorView& tensor) {
  const std::string dtype = tensor.dtype();
  const char* type = dtype == "i32" ? "<i4" : dtype == "i64" ? "<i8" : "<f4";
  const std::string text = header(tensor, type);
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(text.size() & 0xff);
  bytes += static_cast<char>(text.size() >> 8);
  bytes += text;
  const std::vector<double> values = tensor.values();
  if (dtype == "i32") append<int32_t>(bytes, values);
  if (dtype == "i64") append<int64_t>(bytes, values);
  if (dtype != "i32" && dtype != "i64") append<float>(bytes, values);
  return bytes;
}

void save_npy(FileOps& files, const TensorView& tensor, const std::string& path) {
  if (!path.ends_with(".npy"))
    fail(ExitCode::kUsage, "[tensor] expected a file that ends in .npy, which NumPy loads, got {}", path);
  if (std::filesystem::exists(path))
    fail(ExitCode::kUsage, "[tensor] {} already exists: choose another name", path);
  const std::string bytes = npy_bytes(tensor);
  const auto file = files.create(path);
  file->write(bytes.data(), bytes.size());
  file->close();
}

}  // namespace tycho
