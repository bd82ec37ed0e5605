// YAMLs of LLM Foundry, imported.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bindings/import/import.h"
#include "trainer/base/error.h"

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
#define EXPECT_LACKS(text, part) EXPECT_EQ((text).find(part), std::string::npos) << (text)

namespace tycho {

inline std::string with_text_loader(const std::string& lines) {
  return "max_duration: 10ba\ntrain_loader: {name: text, dataset: {local: x}}\n" + lines;
}

/// The recipe with its notes below it, or what was wrong.
inline std::string imported(const std::string& text, const std::vector<PinArgument>& pins = {}) {
  try {
    const Imported made = import_recipe("x.yaml", text, pins);
    std::string out = made.lua + "notes:\n";
    for (const std::string& note : made.notes) out += note + "\n";
    return out;
  } catch (const Error& error) {
    return error.what();
  }
}

/// The same for a file with a text loader and these lines.
inline std::string of(const std::string& lines) { return imported(with_text_loader(lines)); }

}  // namespace tycho
