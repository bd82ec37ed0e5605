// Small checkpoints whose every byte follows from their step, and what loads back.
#pragma once
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {

/// A tensor of a given step: 10 of them, F32 and BF16, of 0 to 9 elements and more.
inline std::vector<char> expected_bytes(int64_t step, int64_t index, int64_t num_bytes) {
  std::vector<char> bytes(static_cast<size_t>(num_bytes));
  auto state = static_cast<uint32_t>(step * 1000003 + index * 7919 + 1);
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  return bytes;
}

/// Owns the bytes of a small model at a step.
struct SampleState {
  std::vector<std::vector<char>> storage;
  std::vector<TensorBytes> tensors;
  CheckpointMeta meta;

  explicit SampleState(int64_t step) {
    for (int64_t i = 0; i < 10; ++i) add(step, i, i % 2 ? "BF16" : "F32", {i});
    add(step, 10, "F32", {});
    add(step, 11, "BF16", {3, 5, 7});
    add(step, 12, "F32", {17, 33});
    meta.step = step;
    meta.train_state = {{"step", step}, {"samples", step * 8}};
    meta.recipe = {{"seed", 17}, {"optimizer", {{"lr", 0.001}}}};
    meta.recipe_hash = "0123456789abcdef";
    meta.files["tokenizer.json"] = "{\"step\": " + std::to_string(step) + "}";
  }

 private:
  void add(int64_t step, int64_t index, const std::string& dtype, std::vector<int64_t> shape) {
    int64_t num_bytes = dtype == "F32" ? 4 : 2;
    for (const int64_t dim : shape) num_bytes *= dim;
    storage.push_back(expected_bytes(step, index, num_bytes));
    tensors.push_back(
        {"model.t" + std::to_string(index), dtype, std::move(shape), storage.back().data(), num_bytes});
  }
};

/// What is wrong with a loaded checkpoint; empty when every byte is as its step says.
inline std::string differences(const CheckpointInfo& info) {
  const SampleState expected(info.step);
  const CheckpointReader reader(info);
  std::string found;
  if (reader.names().size() != expected.tensors.size()) found += "other tensors; ";
  for (const TensorBytes& tensor : expected.tensors) {
    std::vector<char> bytes(static_cast<size_t>(tensor.num_bytes));
    reader.read(tensor.name, bytes.data(), tensor.num_bytes);
    const TensorBytes& described = reader.describe(tensor.name);
    if (described.shape != tensor.shape || described.dtype != tensor.dtype) found += tensor.name + " shape; ";
    if (!bytes.empty() && std::memcmp(bytes.data(), tensor.data, bytes.size()) != 0)
      found += tensor.name + "; ";
  }
  for (const auto& [name, text] : expected.meta.files) {
    if (reader.read_text_file(name) != text) found += name + "; ";
  }
  const auto same = [&](const char* key, const Json& json) {
    return canonical_json(info.manifest[key]) == canonical_json(json);
  };
  if (!same("train_state", expected.meta.train_state)) found += "train_state; ";
  if (!same("recipe", expected.meta.recipe)) found += "recipe; ";
  return found;
}

inline CheckpointInfo save_step(CheckpointStore& store, int64_t step) {
  const SampleState state(step);
  return store.save(state.meta, state.tensors);
}

inline std::vector<int64_t> steps_in(const std::string& dir) {
  std::vector<int64_t> steps;
  for (const CheckpointInfo& info : list_checkpoints(dir)) steps.push_back(info.step);
  return steps;
}

struct Failure {
  ExitCode code = ExitCode::kOk;
  std::string message;
  bool says(const std::string& part) const { return message.find(part) != std::string::npos; }
};

inline Failure failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

}  // namespace tycho
