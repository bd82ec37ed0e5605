// The note is a flat JSON object; mosaicml-streaming ignores the file.
#include "trainer/data/mds/conversion_note.h"

#include <unistd.h>

#include "trainer/base/error.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

constexpr const char* kFile = "/tycho.json";

/// Visits every field once with its name. Reading and writing both use it.
template <class Note, class Visit>
void visit_fields(Note& note, Visit visit) {
  visit("tokenizer_hash", note.tokenizer_hash);
  visit("vocab_size", note.vocab_size);
  visit("bos_text", note.bos_text);
  visit("eos_text", note.eos_text);
  visit("no_wrap", note.no_wrap);
  visit("concat_tokens", note.concat_tokens);
  visit("documents", note.documents);
  visit("text_bytes", note.text_bytes);
  visit("tokens", note.tokens);
  visit("dropped_tokens", note.dropped_tokens);
  visit("samples", note.samples);
}

template <class Note, class Visit>
void visit_newer_fields(Note& note, Visit visit) {
  visit("text_begin", note.text_begin);
  visit("text_end", note.text_end);
  visit("keep_newlines", note.keep_newlines);
  visit("shards", note.shards);
}

}  // namespace

void write_conversion_note(FileOps& files, const std::string& split_dir, const ConversionNote& note) {
  Json json = Json::object();
  const auto write = [&](const char* name, const auto& value) { json[name] = value; };
  visit_fields(note, write);
  visit_newer_fields(note, write);
  write_file_atomically(files, split_dir + kFile, json.dump(2) + "\n");
}

ConversionNote read_conversion_note(const std::string& split_dir) {
  ConversionNote note;
  const std::string path = split_dir + kFile;
  if (::access(path.c_str(), F_OK) != 0) return note;
  const Json json = parse_json(read_file(path), path);
  const auto read = [&](const char* name, auto& value) {
    try {
      json.at(name).get_to(value);
    } catch (const Json::exception&) {
      fail(ExitCode::kUnusable, "[data] {}: \"{}\" is missing or has the wrong type; convert the data again",
           path, name);
    }
  };
  visit_fields(note, read);
  visit_newer_fields(note, [&](const char* name, auto& value) {
    if (json.contains(name)) read(name, value);
  });
  return note;
}

void check_tokenizer(const std::string& split_dir, const std::string& tokenizer_hash,
                     const std::string& place) {
  const std::string made_with = read_conversion_note(split_dir).tokenizer_hash;
  if (made_with.empty() || made_with == tokenizer_hash) return;
  fail(ExitCode::kUnusable,
       "[tokenizer] {} is not the tokenizer that {} was made with (hash {}, the data has {}). Use the "
       "tokenizer of the data, or convert the data again",
       place, split_dir, tokenizer_hash, made_with);
}

}  // namespace tycho
