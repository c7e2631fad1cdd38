// Values of a template: Python's, as far as templates can make them. A Value
// is a small handle; what it points to lives in the Heap of one rendering, or
// in the Program for literals, and goes away with that. So values may point at
// each other in circles (a namespace in itself) and nothing leaks.
#ifndef SLUICE_SRC_TEXT_JINJA_VALUE_H_
#define SLUICE_SRC_TEXT_JINJA_VALUE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/text/jinja/text.h"

namespace sluice::jinja {

// Python's integers have no end; these say so when they reach theirs.
__extension__ typedef __int128 Int;

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kText,
  kList,       // ListObject, also the next three
  kTuple,      //
  kRange,      //
  kGenerator,  // can be gone through once
  kDict,       // DictObject, also the next three
  kKeys,       //
  kValues,     //
  kItems,      //
  kNamespace,  // DictObject whose entries change
  kMacro,      // MacroObject (interpreter.h)
  kLoop,       // LoopObject (interpreter.h)
  kFunction,   // FunctionObject (interpreter.h)
  kMethod,     // MethodObject (interpreter.h)
  kCycler,     // ListObject, `next` is where it stands
  kJoiner,     // ListObject of the separator, `next` 0 the first time
};

struct Object {
  virtual ~Object() = default;
  // Of a list or dict with all below it: every walk through a value is bounded by them.
  int depth = 0;
  size_t weight = 0;  // about the bytes it prints
};

struct Value {
  Kind kind = Kind::kUndefined;
  union {
    Object* object = nullptr;  // UndefinedObject or null for kUndefined
    bool truth;
    double number;
    Int integer;
  };

  static Value None();
  static Value Of(bool truth);
  static Value Of(double number);
  static Value Of(Int integer);
  static Value Of(Kind kind, Object* object);

  bool Is(Kind k) const { return kind == k; }
  bool undefined() const { return kind == Kind::kUndefined; }
  bool IsIntLike() const { return kind == Kind::kInt || kind == Kind::kBool; }
  bool IsNumber() const { return IsIntLike() || kind == Kind::kFloat; }
  bool IsSequence() const { return kind >= Kind::kList && kind <= Kind::kRange; }
  bool IsMapping() const { return kind == Kind::kDict; }
  Int AsInt() const { return kind == Kind::kBool ? Int{truth} : integer; }
  double AsDouble() const { return kind == Kind::kFloat ? number : static_cast<double>(AsInt()); }
  const Text& text() const;
  bool markup() const;  // of a text: HTML that is not escaped again
  struct ListObject& list() const;
  struct DictObject& dict() const;
};

struct TextObject : Object {
  Text text;
  bool markup = false;
};

struct UndefinedObject : Object {
  std::string why;  // "'x' is undefined"
};

struct ListObject : Object {
  std::vector<Value> items;
  size_t next = 0;                    // kGenerator: items before it are spent
  Int start = 0, stop = 0, step = 1;  // kRange
  bool group = false;                 // a tuple of groupby, with the names grouper and list
};

struct DictObject : Object {
  std::vector<std::pair<Value, Value>> entries;

  const Value* Find(const Value& key) const;  // the key must be hashable
  const Value* Find(std::string_view key) const;
  void Set(const Value& key, const Value& value);

 private:
  long IndexOf(const Value& key, size_t hash) const;
  std::unordered_multimap<size_t, size_t> index_;  // of dicts that are not small
};

// Owns what a rendering makes. Nothing is given back before its end; when the limit is passed,
// `status` says so, and the interpreter stops at its next step.
class Heap {
 public:
  explicit Heap(const Limits& limits)
      : limit_(limits.memory_bytes), value_depth_(limits.value_depth) {}

  Value MakeText(Text text, bool markup = false);
  Value MakeText(std::string_view text, bool content = false) {
    return MakeText(Text(text, content));
  }
  Value MakeList(std::vector<Value> items, Kind kind = Kind::kList);
  Value MakeDict() { return Value::Of(Kind::kDict, New<DictObject>()); }
  Value MakeUndefined(std::string why);
  // All insertions into a dict come here: it has the books on depth and bytes.
  void SetEntry(const Value& dict, const Value& key, const Value& value);

  template <class T>
  T* New() {
    Charge(sizeof(T) + 16);
    auto owned = std::make_unique<T>();
    T* made = owned.get();
    objects_.push_back(std::move(owned));
    return made;
  }
  void Charge(size_t bytes) { used_ += bytes; }
  bool Has(size_t bytes) const { return used_ <= limit_ && bytes <= limit_ - used_; }
  const char* failure() const;  // null: all is well

 private:
  void AddChild(Object* object, const Value& child);
  size_t limit_, used_ = 0;
  int value_depth_;
  bool too_deep_ = false, too_heavy_ = false;
  std::vector<std::unique_ptr<Object>> objects_;
};

size_t Weight(const Value& value);
bool Truth(const Value& value);
bool Equal(const Value& a, const Value& b);
bool Hashable(const Value& value);
size_t Hash(const Value& value);
const char* TypeName(const Value& value);  // Python's: "str"
std::string WhyUndefined(const Value& value);

// As str() and repr() print; numbers are frame, texts what they are.
void AppendStr(const Value& value, Text& out);
void AppendRepr(const Value& value, Text& out);
Text Str(const Value& value);
std::string ReprForError(const Value& value);
std::string FloatRepr(double value);
std::string IntText(Int value, unsigned base = 10);

}  // namespace sluice::jinja
#endif  // SLUICE_SRC_TEXT_JINJA_VALUE_H_
