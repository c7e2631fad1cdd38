#include "src/text/tokenizer_base.h"

#include <algorithm>
#include <cctype>

#include "src/text/unicode.h"

namespace sluice {
namespace {

// Plain text is encoded in parts of at most this, so that positions fit 32 bits and memory is
// bounded; only a text beyond it can notice the cut.
constexpr size_t kMaxPartBytes = size_t{1} << 28;

// Texts that end a turn or a document in the families of today, whatever their type: no merge
// can spell them out of ordinary text.
constexpr std::string_view kEndTexts[] = {"<|eot_id|>",
                                          "<|im_end|>",
                                          "<|end|>",
                                          "<|return|>",
                                          "<|call|>",
                                          "<|calls|>",
                                          "<|flush|>",
                                          "<end_of_turn>",
                                          "<turn|>",
                                          "<|eom_id|>",
                                          "<|endoftext|>",
                                          "<|end_of_text|>",
                                          "<|fim_pad|>",
                                          "<|file_sep|>",
                                          "<|repo_name|>",
                                          "<|tool_response>",
                                          "[e~[",
                                          "<|EOT|>",
                                          "<end_of_utterance>",
                                          "<\xEF\xBD\x9C"
                                          "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"};
// Texts that do so only as control tokens: gemma's </s>, say, is an HTML tag.
constexpr std::string_view kControlEndTexts[] = {"</s>",  "<eos>", "<EOT>",  "_<EOT>",
                                                 "[EOT]", "[EOS]", "<|eos|>"};

bool IsSpecial(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUnknown ||
         type == TokenType::kUserDefined;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::string_view StringOr(const Gguf& gguf, std::string_view key, std::string_view otherwise) {
  const Result<std::optional<std::string_view>> value = gguf.String(key);
  return value.ok() && value->has_value() ? **value : otherwise;
}

}  // namespace

void AppendWithBlanks(std::string_view piece, std::string& out) {
  for (size_t at = 0;;) {
    const size_t mark = piece.find(kBlankMark, at);
    out.append(piece, at, mark == std::string_view::npos ? mark : mark - at);
    if (mark == std::string_view::npos) return;
    out.push_back(' ');
    at = mark + kBlankMark.size();
  }
}

void AppendWithBlankMarks(std::string_view text, std::string& out) {
  for (size_t at = 0;;) {
    const size_t blank = text.find(' ', at);
    out.append(text, at, blank == std::string_view::npos ? blank : blank - at);
    if (blank == std::string_view::npos) return;
    out.append(kBlankMark);
    at = blank + 1;
  }
}

Status TokenizerBase::ReadSpecials(const Gguf& gguf, const Defaults& defaults) {
  const auto read = [&](std::string_view name, int32_t otherwise) {
    const int32_t id = vocab_.SpecialFromFile(gguf, name);
    if (id != kNoToken || !vocab_.Has(otherwise)) return id;
    // A default is only a guess: it must look like what it claims to be.
    return !vocab_.has_types() || vocab_.type(otherwise) != TokenType::kNormal ? otherwise
                                                                               : kNoToken;
  };
  bos_ = read("bos", defaults.bos);
  eos_ = read("eos", defaults.eos);
  unknown_ = read("unknown", defaults.unknown);
  ASSIGN_OR_RETURN(const std::optional<bool> add_bos, gguf.Bool("tokenizer.ggml.add_bos_token"));
  ASSIGN_OR_RETURN(const std::optional<bool> add_eos, gguf.Bool("tokenizer.ggml.add_eos_token"));
  add_bos_ = add_bos.value_or(defaults.add_bos) && bos_ != kNoToken;
  add_eos_ = add_eos.value_or(defaults.add_eos) && eos_ != kNoToken;

  for (size_t i = 0; i < vocab_.size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    const std::string_view text = vocab_.text(id);
    if (!IsSpecial(vocab_.type(id)) || text.empty() || text.size() > kMaxMatchedBytes) continue;
    all_special_.Add(text, id);
    if (vocab_.type(id) == TokenType::kUserDefined) user_defined_.Add(text, id);
  }
  FindEnds(gguf);
  FindStrippingTokens(gguf);
  return Status();
}

void TokenizerBase::FindEnds(const Gguf& gguf) {
  const auto add = [&](int32_t id) {
    if (id != kNoToken) ends_.push_back(id);
  };
  add(eos_);
  add(vocab_.SpecialFromFile(gguf, "eot"));
  add(vocab_.SpecialFromFile(gguf, "eom"));
  for (const std::string_view text : kEndTexts) add(vocab_.Find(text));
  for (const std::string_view text : kControlEndTexts) {
    const int32_t id = vocab_.Find(text);
    if (id != kNoToken && vocab_.type(id) == TokenType::kControl) add(id);
  }
  // In the harmony format <|end|> closes one message of an answer; <|return|> and <|call|> (or
  // <|flush|> and <|calls|>) end the answer.
  const auto has = [&](std::string_view text) { return vocab_.Find(text) != kNoToken; };
  if ((has("<|return|>") && has("<|call|>")) || (has("<|flush|>") && has("<|calls|>"))) {
    std::erase(ends_, vocab_.Find("<|end|>"));
  }
  std::sort(ends_.begin(), ends_.end());
}

void TokenizerBase::FindStrippingTokens(const Gguf& gguf) {
  // No key of the file says so. The name is what converters leave behind; SPM files of the
  // architecture phi3 have the same tokenizer under other names.
  const std::string name = Lower(StringOr(gguf, "general.name", ""));
  const bool named =
      name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
  const bool built_so = model_ == "llama" && StringOr(gguf, "general.architecture", "") == "phi3";
  strips_right_ = named || built_so;
  if (!strips_right_) return;
  for (const std::string_view text : {"<unk>", "<s>", "<|endoftext|>"}) {
    keeps_right_.push_back(vocab_.Find(text));
  }
}

bool TokenizerBase::StripsRight(int32_t id) const {
  return strips_right_ &&
         std::find(keeps_right_.begin(), keeps_right_.end(), id) == keeps_right_.end();
}

std::vector<int32_t> TokenizerBase::Encode(std::string_view text,
                                           const EncodeOptions& options) const {
  const Part part{text, options.parse_special};
  return EncodeParts({&part, 1}, options.add_special);
}

std::vector<int32_t> TokenizerBase::EncodeParts(std::span<const Part> parts,
                                                bool add_special) const {
  std::string joined;
  if (parts.size() > 1) {
    for (const Part& part : parts) joined.append(part.text);
  }
  const std::string_view text = parts.size() == 1 ? parts[0].text : joined;
  std::vector<TokenTrie::Match> markers;
  size_t begin = 0;
  for (const Part& part : parts) {
    const size_t end = begin + part.text.size();
    for (size_t at = begin; part.parse_special && at < end;) {
      const TokenTrie::Match match = all_special_.Next(text.substr(0, end), at);
      if (match.bytes == 0) break;
      markers.push_back(match);
      at = match.begin + match.bytes;
    }
    begin = end;
  }
  std::vector<int32_t> ids;
  if (add_special && add_bos_) ids.push_back(bos_);
  EncodeAround(text, markers, ids);
  if (add_special && add_eos_) ids.push_back(eos_);
  return ids;
}

void TokenizerBase::EncodeAround(std::string_view text, std::span<const TokenTrie::Match> markers,
                                 std::vector<int32_t>& ids) const {
  size_t at = 0;
  for (size_t i = 0; i <= markers.size(); ++i) {
    const size_t end = i < markers.size() ? markers[i].begin : text.size();
    while (at < end) {
      const TokenTrie::Match match = user_defined_.Next(text.substr(0, end), at);
      EncodeSlices(text.substr(at, match.begin - at), ids);
      at = match.begin;
      if (match.bytes == 0) break;
      ids.push_back(match.id);
      at = SkipStripped(text.substr(0, end), match);
    }
    // A marker made of blanks may lie in those that the one before it swallowed.
    if (i == markers.size() || markers[i].begin < at) continue;
    ids.push_back(markers[i].id);
    at = SkipStripped(text, markers[i]);
  }
}

// Where the text goes on after a special token.
size_t TokenizerBase::SkipStripped(std::string_view text, const TokenTrie::Match& match) const {
  size_t at = match.begin + match.bytes;
  while (StripsRight(match.id) && at < text.size()) {
    const DecodedChar c = DecodeChar(text, at);
    if (!(ClassOf(c.code) & kSpace)) break;
    at += c.length;
  }
  return at;
}

void TokenizerBase::EncodeSlices(std::string_view text, std::vector<int32_t>& ids) const {
  for (bool opens = true; !text.empty(); opens = false) {
    size_t bytes = text.size();
    if (bytes > kMaxPartBytes) {
      // Not inside a character.
      bytes = kMaxPartBytes;
      while (bytes > kMaxPartBytes - 4 && (static_cast<uint8_t>(text[bytes]) & 0xC0) == 0x80) {
        --bytes;
      }
    }
    EncodePlain(text.substr(0, bytes), opens, ids);
    text.remove_prefix(bytes);
  }
}

void TokenizerBase::AppendPiece(int32_t id, std::string& out) const {
  if (!vocab_.Has(id)) return;
  if (IsSpecial(vocab_.type(id))) {
    out.append(vocab_.text(id));
  } else {
    AppendPlainPiece(id, out);
  }
}

std::string TokenizerBase::Piece(int32_t id) const {
  std::string piece;
  AppendPiece(id, piece);
  return piece;
}

std::string TokenizerBase::Decode(std::span<const int32_t> ids, bool skip_special) const {
  StreamDecoder decoder(*this, skip_special);
  std::string text;
  for (const int32_t id : ids) text += decoder.Push(id);
  return text += decoder.Flush();
}

std::string_view TokenizerBase::text(int32_t id) const {
  return vocab_.Has(id) ? vocab_.text(id) : std::string_view();
}

TokenType TokenizerBase::type(int32_t id) const {
  return vocab_.Has(id) ? vocab_.type(id) : TokenType::kUnused;
}

std::optional<int32_t> TokenizerBase::bos() const {
  return bos_ == kNoToken ? std::nullopt : std::optional(bos_);
}

std::optional<int32_t> TokenizerBase::eos() const {
  return eos_ == kNoToken ? std::nullopt : std::optional(eos_);
}

bool TokenizerBase::IsEnd(int32_t id) const {
  return std::binary_search(ends_.begin(), ends_.end(), id);
}

std::optional<int32_t> TokenizerBase::SpecialId(std::string_view text) const {
  const int32_t id = vocab_.Find(text);
  if (id == kNoToken) return std::nullopt;
  const TokenType type = vocab_.type(id);
  const bool special = type == TokenType::kControl || type == TokenType::kUserDefined;
  return special ? std::optional(id) : std::nullopt;
}

}  // namespace sluice
