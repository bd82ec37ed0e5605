// cuBLASLt's products on the CPU: the few functions that Tycho calls, which hold their arguments to the
// library's rules. All others are refused by name. TYCHO_STANDIN_LT: "none" knows no algorithm, "plain" none
// with an epilogue, "late" takes back at the product what the heuristic promised, "many" offers four
// algorithms, of which the third is the fastest, and each adds in an order of its own.
#include "tests/standin_gpu/runtime/cublas_lt.h"

#include <cublasLt.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/standin_gpu/runtime/checker.h"
#include "tests/standin_gpu/runtime/record.h"
#include "tests/standin_gpu/runtime/state.h"

namespace {

using standin::LtMatrix;
using standin::LtProduct;

struct Handle {
  int device = 0;
};
struct Description {
  int32_t transposes_a = CUBLAS_OP_N, transposes_b = CUBLAS_OP_N, epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *bias = nullptr, *aux = nullptr;
  int64_t aux_step = 0;
};
struct Layout {
  cudaDataType type = CUDA_R_32F;
  uint64_t rows = 0, columns = 0;
  int64_t step = 0;
  bool operator==(const Layout&) const = default;
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t align_a = 256, align_b = 256, align_c = 256, align_d = 256;
};

// The opaque types.
Handle& of(cublasLtHandle_t x) { return *reinterpret_cast<Handle*>(x); }
Description& of(cublasLtMatmulDesc_t x) { return *reinterpret_cast<Description*>(x); }
Layout& of(cublasLtMatrixLayout_t x) { return *reinterpret_cast<Layout*>(x); }
Preference& of(cublasLtMatmulPreference_t x) { return *reinterpret_cast<Preference*>(x); }

template <class To, class Made>
cublasStatus_t give(To* to, Made* made) {
  *to = reinterpret_cast<To>(made);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t refuse(const char* function, const std::string& why) {
  std::fprintf(stderr, "[standin] %s: %s\n", function, why.c_str());
  return CUBLAS_STATUS_INVALID_VALUE;
}

/// Copies an attribute whose size must be that of the field.
template <class Field>
cublasStatus_t set(const char* function, Field& field, const void* value, size_t bytes) {
  if (value == nullptr || bytes != sizeof field) return refuse(function, "an attribute of another size");
  std::memcpy(&field, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

/// Form that an algorithm was chosen for, as it travels in cublasLtMatmulAlgo_t.
struct Chosen {
  uint64_t hash = 0, workspace = 0;
  uint32_t align_a = 0, align_b = 0, align_c = 0, align_d = 0;
  uint32_t number = 0;  // of several for one form
};
static_assert(sizeof(Chosen) <= sizeof(cublasLtMatmulAlgo_t));

uint64_t hash_of(const Description& d, std::initializer_list<const Layout*> layouts) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](uint64_t x) { hash = (hash ^ x) * 0x100000001b3; };
  add(static_cast<uint64_t>(d.transposes_a)), add(static_cast<uint64_t>(d.transposes_b));
  add(static_cast<uint64_t>(d.epilogue));
  for (const Layout* layout : layouts)
    add(layout->type), add(layout->rows), add(layout->columns), add(static_cast<uint64_t>(layout->step));
  return hash;
}

bool is_number(cudaDataType type) { return type == CUDA_R_32F || type == CUDA_R_16BF; }
int64_t width(cudaDataType type) { return type == CUDA_R_32F ? 4 : 2; }

bool has_bias(int32_t e) { return e == CUBLASLT_EPILOGUE_BIAS || e == CUBLASLT_EPILOGUE_GELU_AUX_BIAS; }
bool is_sum(int32_t e) { return e == CUBLASLT_EPILOGUE_BGRADA || e == CUBLASLT_EPILOGUE_BGRADB; }
bool writes_aux(int32_t e) { return e == CUBLASLT_EPILOGUE_GELU_AUX || e == CUBLASLT_EPILOGUE_GELU_AUX_BIAS; }
bool has_aux(int32_t e) { return e == CUBLASLT_EPILOGUE_DGELU || writes_aux(e); }

/// The rule that a product breaks; "" for none.
std::string broken_rule(const Description& d, const Layout& a, const Layout& b, const Layout& c,
                        const Layout& result) {
  const bool a_n = d.transposes_a == CUBLAS_OP_N, b_n = d.transposes_b == CUBLAS_OP_N;
  const uint64_t m = a_n ? a.rows : a.columns, k = a_n ? a.columns : a.rows;
  const uint64_t n = b_n ? b.columns : b.rows, k_of_b = b_n ? b.rows : b.columns;
  for (const Layout* x : {&a, &b, &c, &result}) {
    if (!is_number(x->type)) return "expected fp32 or bf16";
    if (x->rows == 0 || x->columns == 0) return "a matrix without elements";
    if (x->step < static_cast<int64_t>(x->rows)) return "a leading dimension shorter than a column";
  }
  if (k != k_of_b) return "A and B do not fit";
  if (result.rows != m || result.columns != n) return "D has other dims than the product";
  if (c.type != result.type || c.rows != result.rows || c.columns != result.columns) return "C is not like D";
  if (a.type != b.type) return "A and B of two types";
  if (a.type == CUDA_R_32F && result.type != CUDA_R_32F) return "fp32 does not give bf16";
  const int32_t e = d.epilogue;
  if (e != CUBLASLT_EPILOGUE_DEFAULT && !has_bias(e) && !is_sum(e) && !has_aux(e))
    return "epilogue " + std::to_string(e) + " has no entry in the stand-in";
  if ((has_bias(e) || is_sum(e)) && d.bias == nullptr) return "an epilogue without its pointer";
  if (has_aux(e) && d.aux == nullptr) return "GELU without the memory beside it";
  if (has_aux(e) && (d.aux_step % 8 != 0 || d.aux_step < static_cast<int64_t>(m)))
    return "numbers beside GELU whose leading dimension is short or no multiple of 8";
  if (has_aux(e) && reinterpret_cast<uintptr_t>(d.aux) % 16 != 0)
    return "numbers beside GELU at an odd address";
  return "";
}

std::string mode() {
  const char* text = std::getenv("TYCHO_STANDIN_LT");
  return text == nullptr ? "" : text;
}

bool is_aligned(const void* data, uint32_t to) { return reinterpret_cast<uintptr_t>(data) % to == 0; }

size_t bytes_of(const Layout& x) {
  return static_cast<size_t>((static_cast<int64_t>(x.columns - 1) * x.step + static_cast<int64_t>(x.rows)) *
                             width(x.type));
}

/// Tells of memory that is read or written column by column.
void add_columns(standin::Uses& uses, const void* data, const Layout& x, bool written) {
  const auto* begin = static_cast<const char*>(data);
  const bool whole = x.step == static_cast<int64_t>(x.rows);
  for (uint64_t j = 0; j < (whole ? 1 : x.columns); ++j) {
    const char* at = begin + static_cast<int64_t>(j) * x.step * width(x.type);
    const size_t bytes = whole ? bytes_of(x) : x.rows * static_cast<size_t>(width(x.type));
    written ? uses.write(at, bytes) : uses.read(at, bytes);
  }
}

struct Call {
  const Description& d;
  const Layout &a, &b, &c, &result;
  const void *a_data, *b_data, *c_data;
  void* result_data;
  void* workspace;
  size_t workspace_bytes;
  bool adds;
  Chosen chosen;

  bool is_sum() const { return ::is_sum(d.epilogue); }
  bool has_bias() const { return ::has_bias(d.epilogue); }
  bool has_aux() const { return ::has_aux(d.epilogue); }
  /// The numbers beside GELU: as many as the result has.
  Layout aux() const { return {result.type, result.rows, result.columns, d.aux_step}; }
  uint64_t depth() const { return d.transposes_a == CUBLAS_OP_N ? a.columns : a.rows; }
  size_t epilogue_bytes() const {
    if (!is_sum() && !has_bias()) return 0;
    return static_cast<size_t>(width(result.type)) *
           (d.epilogue == CUBLASLT_EPILOGUE_BGRADB ? result.columns : result.rows);
  }

  std::string broken_rule_of_memory() const {
    struct Use {
      const char* name;
      const void* data;
      size_t bytes;
      uint32_t align;
    };
    const std::initializer_list<Use> all = {{"A", a_data, bytes_of(a), chosen.align_a},
                                            {"B", b_data, bytes_of(b), chosen.align_b},
                                            {"C", c_data, bytes_of(c), chosen.align_c},
                                            {"D", result_data, bytes_of(result), chosen.align_d}};
    for (const Use& use : all) {
      if (use.data == nullptr) return std::string(use.name) + " is null";
      if (!is_aligned(use.data, use.align))
        return std::string(use.name) + " is less aligned than the algorithm was told";
      const standin::Owner owner = standin::owner_of(use.data);
      if (owner.place != standin::Place::kDevice || owner.bytes_behind < use.bytes)
        return std::string(use.name) + " reaches beyond the memory of a device";
    }
    if (has_aux()) {
      const standin::Owner owner = standin::owner_of(d.aux);
      if (owner.place != standin::Place::kDevice || owner.bytes_behind < bytes_of(aux()))
        return "numbers beside GELU reach beyond the memory of a device";
    }
    const auto overlaps = [&](const void* x, size_t bytes) {
      const auto *begin = static_cast<const char*>(x), *to = static_cast<const char*>(result_data);
      return begin < to + bytes_of(result) && to < begin + bytes;
    };
    if (has_aux() && overlaps(d.aux, bytes_of(aux()))) return "D lies in the numbers beside GELU";
    if (overlaps(a_data, bytes_of(a)) || overlaps(b_data, bytes_of(b))) return "D lies in A or B";
    if (c_data != result_data && overlaps(c_data, bytes_of(c))) return "D lies in a part of C";
    if (c_data == result_data && c != result) return "C is D, with another layout";
    if (workspace_bytes < chosen.workspace) return "less workspace than the algorithm needs";
    if (chosen.workspace > 0 && (workspace == nullptr || !is_aligned(workspace, 16)))
      return "expected workspace at a multiple of 16 bytes";
    return "";
  }

  void tell(cudaStream_t stream) const {
    standin::Uses uses;
    add_columns(uses, a_data, a, false), add_columns(uses, b_data, b, false);
    if (adds) add_columns(uses, c_data, c, false);
    add_columns(uses, result_data, result, true);
    if (has_bias()) uses.read(d.bias, epilogue_bytes());
    if (is_sum()) uses.write(d.bias, epilogue_bytes());
    if (has_aux()) add_columns(uses, d.aux, aux(), writes_aux(d.epilogue));
    if (chosen.workspace > 0) uses.write(workspace, chosen.workspace);
    standin::enqueued("cublasLtMatmul", stream, uses);
  }

  void record() const {
    const auto name_of = [](cudaDataType type) { return type == CUDA_R_32F ? "fp32" : "bf16"; };
    const auto number = [](uint64_t x) { return std::to_string(x); };
    // Rows here are the library's columns.
    std::string name = "product " + number(result.columns) + "x" + number(result.rows) + "x" +
                       number(depth()) + " " + name_of(a.type) + " to " + (adds ? "added " : "") +
                       name_of(result.type);
    if (has_bias()) name += " with bias";
    if (is_sum()) name += " with sums";
    const auto dense = [](const Layout& x) {
      return static_cast<double>(x.rows * x.columns) * static_cast<double>(width(x.type));
    };
    const auto epilogue = static_cast<double>(epilogue_bytes());
    const double gelu = has_aux() ? dense(aux()) : 0;
    if (has_aux()) name += writes_aux(d.epilogue) ? " and GELU" : " times GELU's derivative";
    standin_record(name.c_str(),
                   dense(a) + dense(b) + (adds ? dense(c) : 0) + (has_bias() ? epilogue : 0) +
                       (writes_aux(d.epilogue) ? 0 : gelu),
                   dense(result) + (is_sum() ? epilogue : 0) + (writes_aux(d.epilogue) ? gelu : 0),
                   2.0 * static_cast<double>(result.rows * result.columns) * static_cast<double>(depth()));
  }

  void compute() const {
    const auto matrix = [](const void* data, const Layout& x, bool transposed) {
      return LtMatrix{data, x.type == CUDA_R_16BF, transposed ? x.step : 1, transposed ? 1 : x.step};
    };
    LtProduct product;
    product.m = static_cast<int64_t>(result.rows), product.n = static_cast<int64_t>(result.columns);
    product.k = static_cast<int64_t>(depth());
    product.parts = 1 + chosen.number;
    product.a = matrix(a_data, a, d.transposes_a != CUBLAS_OP_N);
    product.b = matrix(b_data, b, d.transposes_b != CUBLAS_OP_N);
    product.c = matrix(adds ? c_data : nullptr, c, false);
    product.d = matrix(result_data, result, false);
    if (has_bias()) product.bias = matrix(d.bias, result, false);
    if (d.epilogue == CUBLASLT_EPILOGUE_BGRADA) product.sums_of_a = matrix(d.bias, result, false);
    if (d.epilogue == CUBLASLT_EPILOGUE_BGRADB) product.sums_of_b = matrix(d.bias, result, false);
    if (has_aux()) {
      product.gelu = matrix(d.aux, aux(), false);
      product.is_gelu_gradient = !writes_aux(d.epilogue);
    }
    standin::multiply(product);
  }
};

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return give(handle, new Handle{standin::current_device()});
}
size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "an invalid value";
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F)
    return refuse("cublasLtMatmulDescCreate", "expected sums and factors in fp32");
  return give(made, new Description);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t x) {
  delete &of(x);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t x, cublasLtMatmulDescAttributes_t name,
                                              const void* value, size_t bytes) {
  const char* function = "cublasLtMatmulDescSetAttribute";
  if (name == CUBLASLT_MATMUL_DESC_TRANSA) return set(function, of(x).transposes_a, value, bytes);
  if (name == CUBLASLT_MATMUL_DESC_TRANSB) return set(function, of(x).transposes_b, value, bytes);
  if (name == CUBLASLT_MATMUL_DESC_EPILOGUE) return set(function, of(x).epilogue, value, bytes);
  if (name == CUBLASLT_MATMUL_DESC_BIAS_POINTER) return set(function, of(x).bias, value, bytes);
  if (name == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER) return set(function, of(x).aux, value, bytes);
  if (name == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD) return set(function, of(x).aux_step, value, bytes);
  return refuse(function, "attribute " + std::to_string(name) + " has no entry in the stand-in");
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t step) {
  return give(made, new Layout{type, rows, columns, step});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t x) {
  delete &of(x);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  return give(made, new Preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t x) {
  delete &of(x);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t x,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, size_t bytes) {
  const char* function = "cublasLtMatmulPreferenceSetAttribute";
  Preference& p = of(x);
  if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return set(function, p.workspace, value, bytes);
  if (name == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) return set(function, p.reductions, value, bytes);
  if (name == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) return set(function, p.align_a, value, bytes);
  if (name == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES) return set(function, p.align_b, value, bytes);
  if (name == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES) return set(function, p.align_c, value, bytes);
  if (name == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES) return set(function, p.align_d, value, bytes);
  return refuse(function, "attribute " + std::to_string(name) + " has no entry in the stand-in");
}

constexpr int kManyAlgorithms = 4;

/// One algorithm for whatever keeps the rules, or several. Deep sums of few elements are split, in the
/// workspace.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* count) {
  const char* function = "cublasLtMatmulAlgoGetHeuristic";
  *count = 0;
  if (wanted < 1) return refuse(function, "no algorithm is wanted");
  const Description& description = of(product);
  const std::string broken = broken_rule(description, of(a), of(b), of(c), of(d));
  if (!broken.empty()) return refuse(function, broken);
  const Preference& p = of(preference);
  if (mode() == "none" || (mode() == "plain" && description.epilogue != CUBLASLT_EPILOGUE_DEFAULT))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const uint64_t elements = of(d).rows * of(d).columns;
  const uint64_t depth = description.transposes_a == CUBLAS_OP_N ? of(a).columns : of(a).rows;
  const bool splits = (p.reductions & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0 &&
                      depth >= elements / 16 && 8 * elements <= p.workspace;
  const Chosen chosen = {hash_of(description, {&of(a), &of(b), &of(c), &of(d)}),
                         splits ? 8 * elements : 0,
                         p.align_a,
                         p.align_b,
                         p.align_c,
                         p.align_d};
  *count = mode() == "many" ? std::min(wanted, kManyAlgorithms) : 1;
  for (int i = 0; i < *count; ++i) {
    Chosen one = chosen;
    one.number = static_cast<uint32_t>(i);
    results[i] = {};
    std::memcpy(static_cast<void*>(&results[i].algo), &one, sizeof one);
    results[i].workspaceSize = one.workspace;
    results[i].state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha,
                              const void* a_data, cublasLtMatrixLayout_t a, const void* b_data,
                              cublasLtMatrixLayout_t b, const void* beta, const void* c_data,
                              cublasLtMatrixLayout_t c, void* d_data, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t bytes,
                              cudaStream_t stream) {
  const char* function = "cublasLtMatmul";
  if (alpha == nullptr || beta == nullptr || algorithm == nullptr) return refuse(function, "a null pointer");
  if (mode() == "late") return CUBLAS_STATUS_NOT_SUPPORTED;
  const float one = *static_cast<const float*>(alpha), added = *static_cast<const float*>(beta);
  if (one != 1 || (added != 0 && added != 1)) return refuse(function, "factors other than 0 and 1");
  if (of(handle).device != standin::current_device()) return refuse(function, "the handle of another GPU");
  Call call = {of(product), of(a),  of(b),     of(c), of(d),      a_data, b_data,
               c_data,      d_data, workspace, bytes, added == 1, {}};
  std::memcpy(static_cast<void*>(&call.chosen), algorithm, sizeof call.chosen);
  std::string broken = broken_rule(call.d, call.a, call.b, call.c, call.result);
  if (broken.empty() && call.chosen.hash != hash_of(call.d, {&call.a, &call.b, &call.c, &call.result}))
    broken = "the algorithm of another product";
  if (broken.empty()) broken = call.broken_rule_of_memory();
  if (!broken.empty()) return refuse(function, broken);
  if (standin_check_launch(function, stream) != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  for (const void* pointer : {a_data, b_data, c_data, static_cast<const void*>(d_data)})
    if (standin_check_pointer(function, pointer) != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (call.epilogue_bytes() > 0 && standin_check_pointer(function, call.d.bias) != cudaSuccess)
    return CUBLAS_STATUS_EXECUTION_FAILED;
  if (mode() == "many") standin::pretend_ms(call.chosen.number == 2 ? 1e4 : 2e4);
  if (standin_records()) {
    call.record();
  } else {
    call.tell(stream);
    call.compute();
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
