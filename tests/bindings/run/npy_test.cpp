// Tensors as files of NumPy's, against bytes that numpy.save wrote.
#include "bindings/run/npy.h"

#include <gtest/gtest.h>

#include "tests/bindings/run/fake_session.h"
#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

// io = io.BytesIO(); numpy.save(io, numpy.arange(1, 7, dtype=numpy.float32).reshape(2, 3)); io.getvalue()
// with NumPy 2.4.6; the header is 118 bytes of text, padded with spaces to 128 with what is before it.
std::string numpy_file(const std::string& dict, const std::vector<float>& numbers) {
  std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
  bytes += dict + std::string(117 - dict.size(), ' ') + "\n";
  return bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
}

TEST(Npy, IsWhatNumPyWrites) {
  EXPECT_EQ(npy_bytes(*FakeTensor::counting({2, 3})),
            numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(npy_bytes(FakeTensor({3}, {0.5, -1, 2})),
            numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", {0.5, -1, 2}));
  EXPECT_EQ(npy_bytes(FakeTensor({}, {7})),
            numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", {7}));
}

TEST(Npy, IsANewFileWithItsOwnEnding) {
  const TempDir dir;
  const auto tensor = FakeTensor::counting({2});
  save_npy(real_files(), *tensor, dir / "w.npy");
  EXPECT_EQ(read_file(dir / "w.npy"), npy_bytes(*tensor));
  for (const std::string& path : {dir / "w.npy", dir / "w.txt"}) {
    try {
      save_npy(real_files(), *tensor, path);
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
    }
  }
  EXPECT_EQ(read_file(dir / "w.npy"), npy_bytes(*tensor));
}

}  // namespace
}  // namespace tycho
