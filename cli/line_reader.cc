#include "cli/line_reader.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>

namespace sluice {

LineReader::LineReader(std::string prompt) : prompt_(std::move(prompt)) {
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) return;
  editor_ = el_init("sluice", stdin, stdout, stderr);
  history_ = history_init();
  if (!editor_ || !history_) return;
  HistEvent event;
  history(history_, &event, H_SETSIZE, 500);
  el_set(editor_, EL_CLIENTDATA, this);
  // libedit wants a plain function; it finds the prompt through the editor's client data.
  el_set(editor_, EL_PROMPT, static_cast<char* (*)(EditLine*)>([](EditLine* editor) {
           void* self = nullptr;
           el_get(editor, EL_CLIENTDATA, &self);
           return const_cast<char*>(static_cast<LineReader*>(self)->prompt_.c_str());
         }));
  el_set(editor_, EL_EDITOR, "emacs");
  el_set(editor_, EL_SIGNAL, 1);  // the terminal is put right when Ctrl-C ends the program
  el_set(editor_, EL_HIST, history, history_);
}

LineReader::~LineReader() {
  if (editor_) el_end(editor_);
  if (history_) history_end(history_);
}

std::optional<std::string> LineReader::Next() {
  std::string line;
  if (!editor_) {
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  }
  int length = 0;
  const char* text = el_gets(editor_, &length);
  if (!text || length <= 0) return std::nullopt;
  line.assign(text, static_cast<size_t>(length));
  if (line.back() == '\n') line.pop_back();
  HistEvent event;
  if (!line.empty()) history(history_, &event, H_ENTER, text);
  return line;
}

}  // namespace sluice
