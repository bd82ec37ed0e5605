// SentencePiece joins the two neighbours whose joined piece has the highest score, and among equals the
// leftmost. This is BPE with merges ranked by that score.
#include "trainer/data/tokenizer/sentencepiece.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/base/text/utf8.h"
#include "trainer/data/tokenizer/normalizer_json.h"
#include "trainer/data/tokenizer/pre_tokenizer_json.h"
#include "trainer/data/tokenizer/protobuf.h"
#include "trainer/data/tokenizer/token_decoder.h"

namespace tycho {
namespace {

constexpr const char* kPieceSpace = "\u2581";
constexpr size_t kMaxPieces = 1 << 22;
constexpr size_t kMaxPieceBytes = 4096;

enum class PieceType : uint64_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct Piece {
  std::string_view text;
  float score = 0;
  PieceType type = PieceType::kNormal;
};

/// Contents of the file; the defaults are those of sentencepiece_model.proto.
struct Model {
  std::vector<Piece> pieces;
  uint64_t model_type = 1;  // unigram
  bool byte_fallback = false, space_as_suffix = false;
  std::string_view bos = "<s>", eos = "</s>", pad = "<pad>";
  bool dummy_prefix = true, extra_spaces_removed = true, spaces_escaped = true;
  bool has_character_map = false, has_denormalizer_map = false;
};

class ModelReader {
 public:
  explicit ModelReader(const std::string& place) : place_(place) {}

  template <class... Args>
  [[noreturn]] void malformed(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ExitCode::kUnusable, "[tokenizer] {}: {}", place_, fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void unsupported(const std::string& what) const {
    malformed(
        "{} is not supported; BPE as of Llama 2 and Mistral is: convert it to a tokenizer.json of that kind",
        what);
  }

  Model read(std::string_view bytes) const {
    Model model;
    each_field(bytes, "the model", [&](const ProtobufField& field) {
      if (field.number == 1) model.pieces.push_back(read_piece(message(field), model.pieces.size()));
      if (field.number == 2) read_trainer(message(field), model);
      if (field.number == 3) read_normalizer(message(field), model);
      if (field.number == 5)
        each_field(message(field), "denormalizer_spec", [&](const ProtobufField& inner) {
          if (inner.number == 2) model.has_denormalizer_map = !message(inner).empty();
        });
      if (model.pieces.size() > kMaxPieces) malformed("more than {} pieces", kMaxPieces);
    });
    return model;
  }

 private:
  template <class Visit>
  void each_field(std::string_view bytes, const char* where, Visit visit) const {
    ProtobufReader reader(bytes);
    while (const auto field = reader.next()) visit(*field);
    if (reader.damaged())
      malformed("{} is damaged {} bytes before its end: copy the file again", where, reader.left());
  }
  std::string_view message(const ProtobufField& field) const {
    if (field.wire_type != 2) malformed("field {} has the wrong type: not a tokenizer.model", field.number);
    return field.bytes;
  }
  Piece read_piece(std::string_view bytes, size_t index) const {
    Piece piece;
    each_field(bytes, "a piece", [&](const ProtobufField& field) {
      if (field.number == 1) piece.text = message(field);
      if (field.number == 2 && field.wire_type == 5) piece.score = field.as_float();
      if (field.number == 3) piece.type = static_cast<PieceType>(field.value);
    });
    if (piece.text.empty()) malformed("piece {} is empty", index);
    if (piece.text.size() > kMaxPieceBytes)
      malformed("piece {} has more than {} bytes", index, kMaxPieceBytes);
    if (find_not_text(piece.text) != std::string_view::npos) malformed("piece {} is not UTF-8", index);
    if (!std::isfinite(piece.score)) malformed("the score of piece {} is not a number", index);
    if (piece.type < PieceType::kNormal || piece.type > PieceType::kByte)
      malformed("piece {} has the type {}, which does not exist", index, static_cast<uint64_t>(piece.type));
    if (piece.type == PieceType::kUnused)
      unsupported(fmt::format("piece {}, which is marked as unused,", index));
    return piece;
  }
  void read_trainer(std::string_view bytes, Model& model) const {
    each_field(bytes, "trainer_spec", [&](const ProtobufField& field) {
      if (field.number == 3) model.model_type = field.value;
      if (field.number == 24) model.space_as_suffix = field.value != 0;
      if (field.number == 35) model.byte_fallback = field.value != 0;
      if (field.number == 46) model.bos = message(field);
      if (field.number == 47) model.eos = message(field);
      if (field.number == 48) model.pad = message(field);
    });
  }
  void read_normalizer(std::string_view bytes, Model& model) const {
    each_field(bytes, "normalizer_spec", [&](const ProtobufField& field) {
      if (field.number == 2) model.has_character_map = !message(field).empty();
      if (field.number == 3) model.dummy_prefix = field.value != 0;
      if (field.number == 4) model.extra_spaces_removed = field.value != 0;
      if (field.number == 5) model.spaces_escaped = field.value != 0;
    });
  }

  std::string place_;
};

void check(const ModelReader& reader, const Model& model) {
  static constexpr const char* kTypes[] = {"?", "unigram", "BPE", "word", "char"};
  if (model.pieces.empty()) reader.malformed("no pieces: not a tokenizer.model of SentencePiece");
  if (model.model_type != 2)
    reader.unsupported(
        fmt::format("a model of type {}", kTypes[model.model_type <= 4 ? model.model_type : 0]));
  if (model.has_character_map)
    reader.unsupported("a normalizer with a character map (precompiled_charsmap, such as nmt_nfkc)");
  if (model.has_denormalizer_map) reader.unsupported("a denormalizer");
  if (model.space_as_suffix) reader.unsupported("treat_whitespace_as_suffix");
  if (!model.spaces_escaped) reader.unsupported("escape_whitespaces = false");
}

int byte_of_piece(std::string_view text) {
  int byte = -1;
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  for (int i = 0; i < 256; ++i)
    if (text == fmt::format("<0x{:02X}>", i)) byte = i;
  return byte;
}

/// Sorts tokens by kind: characters, bytes, tokens found in texts, special tokens.
void read_tokens(const ModelReader& reader, const Model& model, TokenizerParts& parts) {
  parts.model.by_character = true;
  parts.model.fuse_unknown = true;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const Piece& piece = model.pieces[i];
    const auto id = static_cast<int32_t>(i);
    if (!parts.ids.emplace(piece.text, id).second) reader.malformed("piece \"{}\" appears twice", piece.text);
    uint32_t code;
    const bool one = decode_utf8(piece.text.data(), piece.text.size(), code) == piece.text.size();
    switch (piece.type) {
      case PieceType::kByte: {
        const int byte = byte_of_piece(piece.text);
        if (byte < 0) reader.malformed("piece {} is not a byte: \"{}\"", i, piece.text);
        if (model.byte_fallback) parts.model.byte_tokens[static_cast<size_t>(byte)] = id;
        break;
      }
      case PieceType::kUnknown:
        parts.model.unknown = id;
        parts.info.unknown = piece.text;
        parts.special.push_back(id);
        break;
      case PieceType::kControl: parts.special.push_back(id); break;
      case PieceType::kUserDefined: {
        AddedToken token;
        token.id = id;
        token.content = piece.text;
        token.normalized = token.verbatim = true;
        parts.added.push_back(std::move(token));
        break;
      }
      default: break;
    }
    if (one && piece.type == PieceType::kNormal) parts.model.character_tokens.emplace(code, id);
  }
  if (parts.model.unknown < 0) reader.malformed("no unknown piece");
  for (int byte = 0; model.byte_fallback && byte < 256; ++byte)
    if (parts.model.byte_tokens[static_cast<size_t>(byte)] < 0)
      reader.malformed("byte_fallback without the piece <0x{:02X}>", byte);
}

/// Adds a merge for every way to join a piece from two others.
void read_merges(const ModelReader& reader, const Model& model, TokenizerParts& parts) {
  std::vector<float> scores;
  for (const Piece& piece : model.pieces)
    if (piece.type == PieceType::kNormal) scores.push_back(piece.score);
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  const auto normal = [&](std::string_view text) {
    const auto found = parts.ids.find(text);
    return found != parts.ids.end() &&
                   model.pieces[static_cast<size_t>(found->second)].type == PieceType::kNormal
               ? found->second
               : -1;
  };
  parts.model.merges = MergeTable(model.pieces.size() * 2);
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const Piece& piece = model.pieces[i];
    if (piece.type != PieceType::kNormal) continue;
    const auto rank = static_cast<uint32_t>(
        std::lower_bound(scores.begin(), scores.end(), piece.score, std::greater<>()) - scores.begin());
    for (size_t at = 0; at < piece.text.size();) {
      uint32_t code;
      const size_t length = decode_utf8(piece.text.data() + at, piece.text.size() - at, code);
      if (length < piece.text.size() && normal(piece.text.substr(at, length)) < 0)
        reader.unsupported(fmt::format("piece {} with a character that is not a piece", i));
      at += length;
      if (at == piece.text.size()) break;
      const int32_t left = normal(piece.text.substr(0, at)), right = normal(piece.text.substr(at));
      if (left < 0 || right < 0) continue;
      parts.model.merges.set(left, right, {rank, static_cast<int32_t>(i)});
      ++parts.info.num_merges;
    }
  }
}

NormalizerStep step_of(NormalizerStep::Kind kind, std::string content, std::string literal = "") {
  NormalizerStep step;
  step.kind = kind;
  step.content = std::move(content);
  step.literal = std::move(literal);
  return step;
}

/// True if no piece has a word beginning inside it. Otherwise words cannot be merged one by one.
bool cuts_at_words(const Model& model) {
  const std::string_view mark = kPieceSpace;
  for (const Piece& piece : model.pieces) {
    if (piece.type != PieceType::kNormal) continue;
    for (size_t at = piece.text.find(mark, 1); at != std::string_view::npos;
         at = piece.text.find(mark, at + 1))
      if (!piece.text.substr(0, at).ends_with(mark)) return false;
  }
  return true;
}

void read_text_rules(const Model& model, TokenizerParts& parts) {
  using Kind = NormalizerStep::Kind;
  if (model.extra_spaces_removed) parts.normalizers.push_back(step_of(Kind::kOneSpace, ""));
  if (model.dummy_prefix) parts.normalizers.push_back(step_of(Kind::kPrepend, " "));
  parts.normalizers.push_back(step_of(Kind::kReplace, kPieceSpace, " "));
  if (model.extra_spaces_removed) parts.normalizers.push_back(step_of(Kind::kTrimEnd, "", kPieceSpace));
  if (cuts_at_words(model) && parts.ids.contains(kPieceSpace)) {
    PreTokenizerStep words;
    words.kind = PreTokenizerStep::Kind::kWords;
    words.literal = kPieceSpace;
    parts.pre_tokenizers.push_back(words);
  }
  const auto known = [&](std::string_view name) { return parts.ids.contains(name) ? std::string(name) : ""; };
  parts.info.bos = known(model.bos);
  parts.info.eos = known(model.eos);
  parts.info.pad = known(model.pad);
  parts.info.normalizers = normalizer_names(parts.normalizers);
  parts.info.pre_tokenizers = pre_tokenizer_names(parts.pre_tokenizers);
}

}  // namespace

bool is_sentencepiece(std::string_view bytes) {
  // A model begins with a piece: tag 0x0A, a length, and the tag 0x0A of its text. JSON may begin with white
  // space too, but a bracket follows it.
  if (bytes.size() < 4 || bytes[0] != '\n' || bytes[2] != '\n') return false;
  const size_t visible = bytes.find_first_not_of(" \t\r\n");
  return visible != std::string_view::npos && bytes[visible] != '{';
}

TokenizerParts parse_sentencepiece(std::string_view bytes, const std::string& place) {
  const ModelReader reader(place);
  TokenizerParts parts;
  parts.hash = hash_hex(bytes);
  parts.info.format = kSentencePieceFile;
  const Model model = reader.read(bytes);
  check(reader, model);
  parts.info.kind = model.byte_fallback ? "BPE with byte fallback" : "BPE of characters";
  read_tokens(reader, model, parts);
  read_merges(reader, model, parts);
  read_text_rules(model, parts);
  const TokenDecoder decoder(kPieceSpace, model.dummy_prefix || model.extra_spaces_removed);
  parts.token_bytes.resize(model.pieces.size());
  for (const auto& [spelling, id] : parts.ids) {
    const bool literal =
        model.pieces[static_cast<size_t>(id)].type != PieceType::kByte && byte_of_piece(spelling) >= 0;
    std::string& plain = parts.token_bytes[static_cast<size_t>(id)];
    plain = literal ? spelling : decoder.bytes(spelling);
    std::string first = literal ? spelling : decoder.first_bytes(spelling);
    if (first != plain) parts.first_bytes.emplace(id, std::move(first));
  }
  parts.info.num_tokens = static_cast<int64_t>(parts.ids.size());
  return parts;
}

}  // namespace tycho
