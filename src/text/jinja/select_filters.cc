// map, select and their kin: filters that take filters and tests by name.
#include "src/text/jinja/sequences.h"

namespace sluice::jinja {

namespace {

Result<Value> Map(Interpreter& in, const Value& self, Args& args) {
  std::vector<Value> results;
  if (!Truth(self)) return in.heap().MakeList({}, Kind::kGenerator);
  ASSIGN_OR_RETURN(const std::vector<Value> items, in.Elements(self));
  if (args.values.empty()) {
    ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("map", args, {"attribute", "default"}));
    if (!bound.Has(0)) return Error("map: expected the name of a filter, or attribute=");
    const Path path = PathOf(in, bound[0]);
    const Value otherwise = bound.Or(1, Value::None());
    for (const Value& item : items) {
      RETURN_IF_ERROR(in.Step());
      ASSIGN_OR_RETURN(const Value value,
                       Follow(in, item, path, bound.IsNone(1) ? nullptr : &otherwise));
      results.push_back(value);
    }
  } else {
    const Value filter = args.values.front();
    args.values.erase(args.values.begin());
    for (const Value& item : items) {
      ASSIGN_OR_RETURN(const Value value, in.CallFilter(filter, item, args));
      results.push_back(value);
    }
  }
  return in.heap().MakeList(std::move(results), Kind::kGenerator);
}

template <bool kWanted, bool kAttribute>
Result<Value> Select(Interpreter& in, const Value& self, Args& args) {
  if (!Truth(self)) return in.heap().MakeList({}, Kind::kGenerator);
  ASSIGN_OR_RETURN(const std::vector<Value> items, in.Elements(self));
  Path path;
  if (kAttribute) {
    if (args.values.empty()) return Error("selectattr: expected the name of an attribute");
    path = PathOf(in, args.values.front());
    args.values.erase(args.values.begin());
  }
  Value test;
  const bool has_test = !args.values.empty();
  if (has_test) {
    test = args.values.front();
    args.values.erase(args.values.begin());
  }
  std::vector<Value> chosen;
  for (const Value& item : items) {
    RETURN_IF_ERROR(in.Step());
    ASSIGN_OR_RETURN(const Value value, Follow(in, item, path));
    bool holds = Truth(value);
    if (has_test) {
      ASSIGN_OR_RETURN(holds, in.CallTest(test, value, args));
    }
    if (holds == kWanted) chosen.push_back(item);
  }
  return in.heap().MakeList(std::move(chosen), Kind::kGenerator);
}

}  // namespace

std::span<const NamedBuiltin> SelectFilters() {
  static constexpr NamedBuiltin kFilters[] = {{"map", Map},
                                              {"select", Select<true, false>},
                                              {"reject", Select<false, false>},
                                              {"selectattr", Select<true, true>},
                                              {"rejectattr", Select<false, true>}};
  return kFilters;
}

}  // namespace sluice::jinja
