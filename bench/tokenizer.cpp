// Times training a tokenizer and encoding with one, without the start of a process and the reading of files.
//   bench_tokenizer train FILE VOCABULARY THREADS OUT   bench_tokenizer encode TOKENIZER FILE IDS THREADS
// Prints seconds; `encode` three passes, the first with an empty cache.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <thread>

#include "bench/timing.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/sources/safe_cut.h"
#include "trainer/data/tokenizer/patterns/piece_scanner.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace {

constexpr size_t kPartBytes = 1 << 20;

void train(char** arguments) {
  tycho::BpeTrainOptions options;
  options.vocab_size = std::atoi(arguments[1]);
  options.threads = std::atoi(arguments[2]);
  std::string text;
  std::cout << seconds([&] {
    text = tycho::train_bpe(tycho::find_input_files({arguments[0]}, {}).files, options);
  }) << "\n";
  std::ofstream(arguments[3], std::ios::binary) << text;
}

/// Parts that can be encoded alone.
std::vector<std::string_view> cut(std::string_view text) {
  std::vector<std::string_view> parts;
  while (text.size() > kPartBytes) {
    const size_t end = std::min(tycho::find_safe_cut(text, kPartBytes), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  parts.push_back(text);
  return parts;
}

void encode(char** arguments) {
  const std::string text = tycho::read_file(arguments[1]);
  const auto tokenizer = tycho::load_tokenizer(arguments[0]);
  const int threads = std::atoi(arguments[3]);
  const std::vector<std::string_view> parts = cut(text);
  std::vector<std::vector<int32_t>> ids(parts.size());
  for (int pass = 0; pass < 3; ++pass) {
    std::cout << seconds([&] {
      std::atomic<size_t> next = 0;
      const auto work = [&] {
        for (size_t i = next++; i < parts.size(); i = next++) ids[i] = tokenizer->encode(parts[i]);
      };
      std::vector<std::jthread> helpers;
      for (int i = 1; i < threads; ++i) helpers.emplace_back(work);
      work();
    }) << "\n";
  }
  std::ofstream out(arguments[2], std::ios::binary);
  for (const auto& part : ids)
    out.write(reinterpret_cast<const char*>(part.data()),
              static_cast<std::streamsize>(part.size() * sizeof part[0]));
}

}  // namespace

int main(int count, char** words) {
  const std::string verb = count > 1 ? words[1] : "";
  if (verb == "train" && count == 6) {
    train(words + 2);
  } else if (verb == "encode" && count == 6) {
    encode(words + 2);
  } else {
    std::cerr << "bench_tokenizer train FILE VOCABULARY THREADS OUT | encode TOKENIZER FILE IDS THREADS\n";
    return 2;
  }
}
