// The tiny models of tests/golden/hf_tiny.py, and folders made from them.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/safetensors.h"

namespace tycho {

inline std::string golden_model(const std::string& name) {
  return std::string(TYCHO_GOLDEN_DIR) + "/hf/" + name;
}

/// The text of a tokenizer of tokenizer_styles.py.
inline std::string style_file(const std::string& name) {
  return read_file(std::string(TYCHO_GOLDEN_DIR) + "/tokenizer_styles/" + name);
}

inline std::string copy_model(const std::string& name, const std::string& to) {
  std::filesystem::copy(golden_model(name), to);
  return to;
}

inline void write_text_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

inline Json read_json_file(const std::string& path) { return parse_json(read_file(path), path); }

/// Changes the config.json of a folder.
inline void edit_config(const std::string& folder, const std::function<void(Json&)>& edit) {
  Json json = read_json_file(folder + "/config.json");
  edit(json);
  write_text_file(folder + "/config.json", json.dump());
}

/// name -> bytes of every tensor of a safetensors file.
inline std::map<std::string, std::string> tensors_of_file(const std::string& path) {
  std::map<std::string, std::string> tensors;
  const SafetensorsHeader header = read_safetensors_header(path);
  const std::string bytes = read_file(path);
  for (const SafetensorsEntry& entry : header.entries)
    tensors[entry.name] = bytes.substr(static_cast<size_t>(header.data_start + entry.begin),
                                       static_cast<size_t>(entry.end - entry.begin));
  return tensors;
}

/// The bytes of a tensor of a checkpoint.
inline std::string bytes_of(const CheckpointReader& reader, const std::string& name) {
  std::string bytes(static_cast<size_t>(reader.describe(name).num_bytes), '\0');
  reader.read(name, bytes.data(), reader.describe(name).num_bytes);
  return bytes;
}

/// Returns the tensors of all .safetensors files of a folder, but those of its oracle.
inline std::map<std::string, std::string> tensors_of_folder(const std::string& folder) {
  std::map<std::string, std::string> tensors;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors" && entry.path().filename() != "expected.safetensors" &&
        entry.path().filename() != "steps.safetensors")
      tensors.merge(tensors_of_file(entry.path().string()));
  return tensors;
}

/// Runs `act` and returns the message of its Error, whose code must be `code`.
template <class Act>
std::string message_of(ExitCode code, Act act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
}

}  // namespace tycho
