// How tensors are printed: a header, a common scale, and corners of what is large. Torch-free.
#pragma once
#include <string>

#include "trainer/session/tensor_view.h"

namespace tycho {

/// "f32[2304×768] cuda:0  mean 1.3e-05  std 0.0203  min -0.091  max 0.094  finite".
std::string tensor_header(const TensorView& tensor, bool unicode);

/// The header and at most `rows` rows and `columns` columns: the first ones, and the last behind an ellipsis.
/// Numbers share one scale, which stands above them; "(value):show(rows)" tells of more. Every line ends in
/// '\n'.
std::string tensor_text(const TensorView& tensor, int64_t rows, int64_t columns, bool unicode);

/// " -0.09 ▁▁▂▃▅▇█▇▅▃▂▁▁ 0.09": one row; digits 0 to 9 for bars in ASCII.
std::string histogram_text(const Histogram& histogram, bool unicode);

}  // namespace tycho
