// A stretch of a rendered conversation, as chat templates yield it and
// tokenizers take it. Plain data.
#ifndef SLUICE_SRC_TEXT_CHAT_PART_H_
#define SLUICE_SRC_TEXT_CHAT_PART_H_

#include <string>

namespace sluice {

// The frame may hold control tokens, content never does.
struct ChatPart {
  std::string text;
  bool frame;
};

}  // namespace sluice
#endif  // SLUICE_SRC_TEXT_CHAT_PART_H_
