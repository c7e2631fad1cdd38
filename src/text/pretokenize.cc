#include "src/text/pretokenize.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "src/text/pretokenize_rules.h"
#include "src/text/unicode.h"

namespace sluice {
namespace {

constexpr PreRule kGpt2[] = {Gpt2Words};
constexpr PreRule kDigitsGpt2[] = {OneNumber, Gpt2Words};
constexpr PreRule kDefault[] = {DefaultPunctuation, Gpt2Words, NumberRun, ThreeAsciiDigits};
constexpr PreRule kFalcon[] = {FalconPunctuation, Gpt2Words, ThreeAsciiDigits};
constexpr PreRule kLlama3[] = {WordRule<WordStyle{}>};
constexpr PreRule kQwen2[] = {WordRule<WordStyle{.max_digits = 1}>};
constexpr PreRule kQwen35[] = {WordRule<WordStyle{.marks = true, .max_digits = 1}>};
constexpr PreRule kGpt4o[] = {
    WordRule<WordStyle{.contractions = false, .cased = true, .suffix = true, .slashes = true}>};
constexpr PreRule kTekken[] = {
    WordRule<WordStyle{.contractions = false, .cased = true, .max_digits = 1, .slashes = true}>};
constexpr PreRule kKimi[] = {
    WordRule<WordStyle{.contractions = false, .cased = true, .suffix = true, .han = true}>};
constexpr PreRule kSeedCoder[] = {WordRule<WordStyle{.max_digits = 1, .newlines = false}>};
constexpr PreRule kMinicpm5[] = {
    ThreeNumbers, WordRule<WordStyle{.max_digits = std::numeric_limits<int>::max()}>};
constexpr PreRule kLaguna[] = {LinesAndBreaks, WordRule<WordStyle{.max_digits = 1}>};
constexpr PreRule kDeepseek3[] = {ThreeNumbers, HanAndKana, DeepseekWords};
constexpr PreRule kDeepseekLlm[] = {Newline,        DeepseekLetters, DeepseekPunctuation,
                                    TrailingSpaces, HanToHangul,     OneNumber};
constexpr PreRule kDeepseekCoder[] = {Newline, SpaceLetters, SpacePunctuation, HanToHangul,
                                      OneNumber};
constexpr PreRule kBloom[] = {BloomWords};
constexpr PreRule kViking[] = {BloomWords, OneNumber};
constexpr PreRule kLines[] = {LinesAndBreaks};

constexpr PreTokenizer Llama3(std::string_view name) {
  return {.name = name, .rules = kLlama3, .whole_words = true, .add_bos = true};
}
constexpr PreTokenizer Plain(std::string_view name, std::span<const PreRule> rules) {
  return {.name = name, .rules = rules};
}
constexpr PreTokenizer Whole(std::string_view name, std::span<const PreRule> rules) {
  return {.name = name, .rules = rules, .whole_words = true};
}
constexpr PreTokenizer Composed(std::string_view name, std::span<const PreRule> rules) {
  return {.name = name, .rules = rules, .nfc = true};
}
constexpr PreTokenizer Lines(std::string_view name) {
  return {.name = name, .rules = kLines, .add_bos = true, .bytes = false};
}

// The names that converters write, by family.
constexpr PreTokenizer kPreTokenizers[] = {
    Plain("default", kDefault),
    Llama3("llama-bpe"),
    Llama3("llama3"),
    Llama3("llama-v3"),
    Llama3("falcon3"),
    Llama3("falcon-h1"),
    Llama3("pixtral"),
    Llama3("midm-2.0"),
    Llama3("lfm2"),
    Llama3("jina-v5-nano"),
    Plain("smaug-bpe", kLlama3),
    Plain("dbrx", kLlama3),
    Plain("chatglm-bpe", kLlama3),
    Whole("glm4", kLlama3),
    Whole("glm5", kLlama3),
    Whole("minicpm5", kMinicpm5),
    Composed("qwen2", kQwen2),
    Composed("deepseek-r1-qwen", kQwen2),
    Composed("megrez", kQwen2),
    Composed("kormo", kQwen2),
    Composed("f2llmv2", kQwen2),
    Composed("stablelm2", kQwen2),
    Plain("hunyuan", kQwen2),
    Plain("solar-open", kQwen2),
    Plain("grok-2", kQwen2),
    Plain("bailingmoe", kQwen2),  // its \s*[\r\n] ends where \s*[\r\n]+ does
    Plain("bailingmoe2", kQwen2),
    Plain("llada-moe", kQwen2),
    Plain("seed-coder", kSeedCoder),
    Plain("laguna", kLaguna),
    Composed("qwen35", kQwen35),
    Plain("gpt-4o", kGpt4o),
    Plain("llama4", kGpt4o),
    Plain("kanana2", kGpt4o),
    Plain("talkie", kGpt4o),
    Plain("minimax-m2", kGpt4o),
    {.name = "tekken", .rules = kTekken, .whole_words = true, .add_bos = true},
    Plain("kimi-k2", kKimi),
    Plain("deepseek-llm", kDeepseekLlm),
    Plain("deepseek-coder", kDeepseekCoder),
    Plain("deepseek-v3", kDeepseek3),
    Plain("hunyuan-dense", kDeepseek3),
    Plain("hy_v4", kDeepseek3),
    Plain("joyai-llm", kDeepseek3),
    Plain("falcon", kFalcon),
    Plain("gpt-2", kGpt2),
    Plain("gpt2", kGpt2),
    Plain("phi-2", kGpt2),
    Plain("gigachat", kGpt2),
    Plain("jina-es", kGpt2),
    Plain("jina-de", kGpt2),
    Plain("jina-v1-en", kGpt2),
    Plain("jina-v2-es", kGpt2),
    Plain("jina-v2-de", kGpt2),
    Plain("jina-v2-code", kGpt2),
    Plain("roberta-bpe", kGpt2),
    Plain("a.x-4.0", kGpt2),
    Plain("mellum", kGpt2),
    Plain("modern-bert", kGpt2),
    Plain("jais", kGpt2),
    Plain("exaone4", kGpt2),
    Plain("trillion", kGpt2),
    Plain("granite-docling", kGpt2),
    Composed("mpt", kGpt2),
    Composed("olmo", kGpt2),
    Plain("starcoder", kDigitsGpt2),
    Plain("refact", kDigitsGpt2),
    Plain("smollm", kDigitsGpt2),
    Plain("codeshell", kDigitsGpt2),
    Plain("exaone", kDigitsGpt2),
    Plain("minerva-7b", kDigitsGpt2),
    Plain("mellum2", kDigitsGpt2),
    Composed("command-r", kDigitsGpt2),
    Plain("bloom", kBloom),
    Plain("gpt3-finnish", kBloom),
    Plain("poro-chat", kBloom),
    Plain("viking", kViking),
    Lines("gemma4"),
};

// Cuts [begin, end) where `rule` matches; what lies between two matches is a piece too.
void Cut(const TextSpan& text, PreRule rule, std::vector<size_t>& ends) {
  size_t gap = text.begin;  // start of the characters no match took
  for (size_t at = text.begin; at < text.end;) {
    const size_t end = rule(text, at);
    if (end == at) {
      ++at;
      continue;
    }
    if (gap < at) ends.push_back(at);
    ends.push_back(end);
    gap = at = end;
  }
  if (gap < text.end) ends.push_back(text.end);
}

}  // namespace

const PreTokenizer* FindPreTokenizer(std::string_view name) {
  for (const PreTokenizer& pre : kPreTokenizers) {
    if (pre.name == name) return &pre;
  }
  return nullptr;
}

void SplitWords(const PreTokenizer& pre, std::string_view text, std::vector<uint32_t>& ends) {
  std::vector<TextChar> chars;
  chars.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const DecodedChar c = DecodeChar(text, at);
    chars.push_back({c.code, static_cast<uint32_t>(at), ClassOf(c.code)});
    at += c.length;
  }
  std::vector<size_t> pieces{chars.size()}, next;
  for (const PreRule rule : pre.rules) {
    next.clear();
    size_t begin = 0;
    for (const size_t end : pieces) {
      Cut({chars.data(), begin, end}, rule, next);
      begin = end;
    }
    std::swap(pieces, next);
  }
  ends.clear();
  ends.reserve(pieces.size());
  for (const size_t end : pieces) {
    ends.push_back(end < chars.size() ? chars[end].offset : static_cast<uint32_t>(text.size()));
  }
}

}  // namespace sluice
