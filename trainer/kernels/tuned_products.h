// Algorithms of a GPU's products that are chosen by timing, as texts that ranks exchange and a machine keeps.
#pragma once
#include <string>

#include "trainer/kernels/tensor.h"

namespace tycho {

/// Lets matmul_route() say whether products are tuned, before use_products() knows by which algorithms.
void expect_tuned_products(bool are_tuned);
/// Returns the forms of products on a GPU that were met so far and have no chosen algorithm, a line each.
std::string untuned_products(const at::Device& device);
/// Times the algorithms of each of those forms on the GPU of `idle`, bytes that are overwritten. Returns the
/// fastest, a line each. A form that does not fit into `idle` gets the algorithm that the library proposes
/// first.
std::string time_products(const std::string& forms, Tensor& idle);
/// Takes the algorithms of time_products() for their forms, instead of those of earlier calls, and their hash
/// into matmul_route(); "": none. Throws Error for a text of another form, and has done nothing then.
void use_products(const std::string& choices, const at::Device& device);

/// Returns what matmul_route() says of tuning: "", ", tuned in the first step" or ", tuned 2f19…".
const std::string& tuning_note();

}  // namespace tycho
