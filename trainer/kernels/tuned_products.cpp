// A line is the numbers of a form; behind a colon, the bytes of workspace and the words of the algorithm.
#include "trainer/kernels/tuned_products.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/kernels/twins/library_products.h"

namespace tycho {
namespace {

std::string note;

/// Makes the device the current one, which the library uses.
void enter(const at::Device& device) {
  stream_of(at::empty({0}, at::TensorOptions(device).dtype(at::kByte)));
}

std::string form_text(const ProductForm& form) { return fmt::format("{}", fmt::join(form, " ")); }

bool read(std::istringstream& in, ProductForm& form) {
  return std::all_of(form.begin(), form.end(),
                     [&](int64_t& number) { return static_cast<bool>(in >> number); });
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::optional<ProductChoice> choice_of(const std::string& line) {
  std::istringstream in(line);
  ProductChoice choice;
  char colon = 0;
  if (!read(in, choice.form) || !(in >> colon >> choice.workspace) || colon != ':') return std::nullopt;
  in >> std::hex;
  for (uint64_t& word : choice.algorithm)
    if (!(in >> word)) return std::nullopt;
  return choice;
}

std::string text_of(const ProductChoice& choice) {
  return fmt::format("{} : {} {:x}\n", form_text(choice.form), choice.workspace,
                     fmt::join(choice.algorithm, " "));
}

}  // namespace

void expect_tuned_products(bool are_tuned) { note = are_tuned ? ", tuned in the first step" : ""; }
const std::string& tuning_note() { return note; }

std::string untuned_products(const at::Device& device) {
  enter(device);
  std::string text;
  for (const ProductForm& form : library_products()->forms()) text += form_text(form) + "\n";
  return text;
}

std::string time_products(const std::string& forms, Tensor& idle) {
  const LibraryProducts& library = *library_products();
  idle.fill_(0x3c);  // 0.0115 in bf16 and fp32
  const Tensor workspace = at::empty({kMostProductWorkspace}, idle.options());
  const Stream stream = stream_of(idle);
  std::string text;
  for (const std::string& line : lines_of(forms)) {
    std::istringstream in(line);
    ProductForm form = {};
    TYCHO_CHECK(read(in, form), "[matmul] expected {} numbers of a form, got \"{}\"", form.size(), line);
    text +=
        text_of(library.operand_bytes(form) > idle.numel()
                    ? library.first(form)
                    : library.fastest(form, idle.mutable_data_ptr(), workspace.mutable_data_ptr(), stream));
  }
  return text;
}

void use_products(const std::string& choices, const at::Device& device) {
  std::vector<ProductChoice> all;
  for (const std::string& line : lines_of(choices)) {
    const std::optional<ProductChoice> choice = choice_of(line);
    TYCHO_CHECK(choice.has_value(), "[matmul] expected a form and its algorithm, got \"{}\"", line);
    all.push_back(*choice);
  }
  enter(device);
  library_products()->use(all);
  note = choices.empty() ? "" : ", tuned " + hash_hex(choices);
}

}  // namespace tycho
