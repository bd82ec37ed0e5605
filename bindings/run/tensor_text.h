// Tensors as text: a header, a common scale, and corners of large ones. Torch-free.
#pragma once
#include <string>

#include "trainer/session/tensor_view.h"

namespace tycho {

/// Returns "f32[2304×768] cuda:0  mean 1.3e-05  std 0.0203  min -0.091  max 0.094  finite".
std::string tensor_header(const TensorView& tensor, bool unicode);

/// Returns the header and at most `rows` rows and `columns` columns: the first ones, and the last after an
/// ellipsis. Numbers share one scale, printed above them; a line "(value):show(rows)" says how to see more.
/// Every line ends in '\n'.
std::string tensor_text(const TensorView& tensor, int64_t rows, int64_t columns, bool unicode);

/// Returns one row: " -0.09 ▁▁▂▃▅▇█▇▅▃▂▁▁ 0.09"; in ASCII, digits 0 to 9 stand for bars.
std::string histogram_text(const Histogram& histogram, bool unicode);

}  // namespace tycho
