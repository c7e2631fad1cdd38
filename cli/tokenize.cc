// sluice tokenize: text to token ids and back, with the vocabulary of any GGUF
// file, models that cannot run included.
#include <boost/json.hpp>
#include <cctype>
#include <cstdio>
#include <iostream>
#include <vector>

#include "cli/command.h"
#include "cli/model_path.h"
#include "src/base/printable.h"
#include "src/file/gguf.h"
#include "src/text/json_text.h"
#include "src/text/tokenizer.h"
#include "src/text/unicode.h"

namespace sluice {
namespace {

struct TokenizeFlags {
  std::string model, text;
  bool has_text = false;
  bool add_special = false, parse_special = false, skip_special = false;
  bool decode = false, stream = false;
  bool ids = false, json = false;
};

void WriteOut(std::string_view bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stdout); }

void WriteJson(std::span<const int32_t> ids, std::string_view text) {
  const boost::json::object object{{"ids", boost::json::array(ids.begin(), ids.end())},
                                   {"text", ReplaceBadUtf8(text)}};
  WriteOut(ToJson(object) + '\n');
}

// One id per line with its piece, as JSON writes a string.
void WriteTable(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  for (const int32_t id : ids) {
    const std::string piece = ReplaceBadUtf8(tokenizer.Piece(id));
    WriteOut(std::to_string(id) + '\t' + ToJson(boost::json::value(piece)) + '\n');
  }
}

void WriteIds(std::span<const int32_t> ids) {
  std::string line;
  for (const int32_t id : ids) {
    if (!line.empty()) line += ' ';
    line += std::to_string(id);
  }
  WriteOut(line + '\n');
}

bool IsSeparator(char c) {
  return std::isspace(static_cast<unsigned char>(c)) || c == ',' || c == '[' || c == ']';
}

Result<int32_t> ParseId(const std::string& word, size_t vocab) {
  size_t value = 0;
  bool good = word.size() < 12;
  for (size_t i = 0; good && i < word.size(); ++i) {
    good = std::isdigit(static_cast<unsigned char>(word[i])) != 0;
    value = value * 10 + static_cast<size_t>(word[i] - '0');
  }
  if (!good || value >= vocab) {
    return Status(StatusCode::kInvalidArgument, "--decode: expected ids from 0 to " +
                                                    std::to_string(vocab - 1) + ", found \"" +
                                                    Printable(word, 20) + '"');
  }
  return static_cast<int32_t>(value);
}

// Calls `take` with each id of `in` as soon as it is there; ids are separated by blanks, commas
// or the brackets of a JSON array.
template <class Take>
Status ForEachId(std::istream& in, size_t vocab, Take take) {
  std::string word;
  for (int c = in.get();; c = in.get()) {
    const bool end = c == std::istream::traits_type::eof();
    if (!end && !IsSeparator(static_cast<char>(c))) {
      word.push_back(static_cast<char>(c));
      continue;
    }
    if (!word.empty()) {
      ASSIGN_OR_RETURN(const int32_t id, ParseId(word, vocab));
      take(id);
      word.clear();
    }
    if (end) return Status();
  }
}

Status DecodeIds(const Tokenizer& tokenizer, std::istream& in, const TokenizeFlags& f) {
  StreamDecoder decoder(tokenizer, f.skip_special);
  std::vector<int32_t> ids;
  std::string text;
  RETURN_IF_ERROR(ForEachId(in, tokenizer.vocab_size(), [&](int32_t id) {
    const std::string part = decoder.Push(id);
    if (!f.stream) {
      ids.push_back(id);
      text += part;
      return;
    }
    if (f.json) {
      WriteJson({&id, 1}, part);
    } else {
      WriteOut(part);
    }
    std::fflush(stdout);
  }));
  text += decoder.Flush();
  if (f.json) {
    WriteJson(ids, text);
  } else {
    WriteOut(text);
  }
  return Status();
}

Status EncodeText(const Tokenizer& tokenizer, const TokenizeFlags& f) {
  std::string text = f.text;
  if (!f.has_text) {
    ASSIGN_OR_RETURN(text, ReadAll("-"));
  }
  const std::vector<int32_t> ids =
      tokenizer.Encode(text, {.add_special = f.add_special, .parse_special = f.parse_special});
  if (f.json) {
    WriteJson(ids, text);
  } else if (f.ids) {
    WriteIds(ids);
  } else {
    WriteTable(tokenizer, ids);
  }
  return Status();
}

Status Run(const TokenizeFlags& f) {
  ASSIGN_OR_RETURN(const std::string path, FindModel(f.model));
  ASSIGN_OR_RETURN(const std::unique_ptr<Gguf> gguf, Gguf::Open(path));
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Load(*gguf));
  if (!f.decode) return EncodeText(*tokenizer, f);
  std::istringstream argument(f.text);
  return DecodeIds(*tokenizer, f.has_text ? argument : std::cin, f);
}

}  // namespace

void AddTokenize(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App* command =
      app.add_subcommand("tokenize", "Token ids of a text, or the text of token ids");
  AddModel(*command, &flags->model)->required();
  CLI::Option* text = command->add_option(
      "TEXT", flags->text, "The text, or the ids with --decode; without it, all bytes of stdin");
  command->add_flag("--add-special", flags->add_special,
                    "Add BOS, EOS, CLS, SEP as the file and its family say");
  command->add_flag("--parse-special", flags->parse_special,
                    "The text of a control token becomes that token");
  command->add_flag("--ids", flags->ids, "Print the ids only, on one line");
  command->add_flag("--json", flags->json, "Print one object with the keys ids and text");
  CLI::Option* decode =
      command->add_flag("--decode", flags->decode, "The other way: ids in, text out");
  command->add_flag("--skip-special", flags->skip_special, "Leave control tokens out of the text")
      ->needs(decode);
  command
      ->add_flag("--stream", flags->stream,
                 "Print after each id what may leave: no character is cut. With --json one object "
                 "per id, and one for the rest")
      ->needs(decode);
  command->footer(
      "Examples:\n"
      "  sluice tokenize model.gguf 'Hello, world' --add-special\n"
      "  sluice tokenize qwen3 --ids < page.txt | sluice tokenize qwen3 --decode");
  command->callback([flags, text, exit_code] {
    flags->has_text = text->count() > 0;
    const Status status = Run(*flags);
    *exit_code = status.ok() ? kExitOk : ReportError("tokenize", status);
  });
}

}  // namespace sluice
