// Products and attention of LibTorch in record mode: what a GPU would launch, by shape.
#pragma once
#include <torch/library.h>

namespace standin {

/// Registers them in place of the operators that compute (own_entries.h), and of plain products.
void put_recorded_entries(torch::Library& library);

}  // namespace standin
