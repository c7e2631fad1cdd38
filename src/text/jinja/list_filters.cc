// Filters of lists, dicts and anything.
#include <algorithm>

#include "src/text/jinja/sequences.h"

namespace sluice::jinja {

namespace {

Result<Value> Length(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("length", args, {}));
  return in.Length(self);
}

Result<Value> Default(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("default", args, {"default_value", "boolean"}));
  if (!self.undefined() && !(bound.Truthy(1) && !Truth(self))) return self;
  return bound.Has(0) ? bound[0] : in.heap().MakeText("");
}

Result<Value> First(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("first", args, {}));
  if (self.Is(Kind::kGenerator)) {
    ListObject& list = self.list();
    if (list.next < list.items.size()) return list.items[list.next++];
  } else if (self.Is(Kind::kText) && !self.text().empty()) {
    return in.GetItem(self, Value::Of(Int{0}));
  } else {
    ASSIGN_OR_RETURN(const std::vector<Value> items, in.Elements(self));
    if (!items.empty()) return items.front();
  }
  return in.heap().MakeUndefined("there is no first item, the sequence is empty");
}

Result<Value> Last(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("last", args, {}));
  if (self.Is(Kind::kGenerator)) return Error("'generator' object is not reversible");
  if (self.Is(Kind::kText) && !self.text().empty()) return in.GetItem(self, Value::Of(Int{-1}));
  ASSIGN_OR_RETURN(const std::vector<Value> items, in.Elements(self));
  if (!items.empty()) return items.back();
  return in.heap().MakeUndefined("there is no last item, the sequence is empty");
}

Result<Value> List(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("list", args, {}));
  ASSIGN_OR_RETURN(std::vector<Value> items, in.Elements(self));
  return in.heap().MakeList(std::move(items));
}

Result<Value> Join(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("join", args, {"d", "attribute"}));
  const Text separator = bound.Has(0) ? Str(bound[0]) : Text();
  ASSIGN_OR_RETURN(const std::vector<Value> items, in.Elements(self));
  const Path path = bound.IsNone(1) ? Path() : PathOf(in, bound[1]);
  Text out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.Append(separator);
    ASSIGN_OR_RETURN(const Value item, Follow(in, items[i], path));
    AppendStr(item, out);
    RETURN_IF_ERROR(in.Step());
    RETURN_IF_ERROR(in.TextRoom(out.size()));
  }
  return in.heap().MakeText(std::move(out));
}

Result<Value> Reverse(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("reverse", args, {}));
  ASSIGN_OR_RETURN(std::vector<Value> items, in.Elements(self));
  std::reverse(items.begin(), items.end());
  if (self.Is(Kind::kText)) {
    Text out;
    for (const Value& item : items) out.Append(item.text());
    return in.heap().MakeText(std::move(out), self.markup());
  }
  return in.heap().MakeList(std::move(items),
                            self.Is(Kind::kGenerator) ? Kind::kList : Kind::kGenerator);
}

// The keys to order items by, one for each.
Result<std::vector<Value>> Keys(Interpreter& in, const std::vector<Value>& items, const Path& path,
                                bool case_sensitive, const Value* otherwise = nullptr) {
  std::vector<Value> keys;
  for (const Value& item : items) {
    RETURN_IF_ERROR(in.Step());
    ASSIGN_OR_RETURN(const Value key, Follow(in, item, path, otherwise));
    keys.push_back(case_sensitive ? key : FoldCase(in, key));
  }
  return keys;
}

Result<Value> Sort(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound,
                   Bound::Bind("sort", args, {"reverse", "case_sensitive", "attribute"}));
  ASSIGN_OR_RETURN(std::vector<Value> items, in.Elements(self));
  std::vector<Value> keys;
  if (!bound.IsNone(2) && bound[2].Is(Kind::kText) &&
      bound[2].text().bytes().find(',') != std::string::npos) {
    // "a,b": by a, then by b.
    std::vector<std::vector<Value>> lists(items.size());
    const Text& all = bound[2].text();
    for (size_t from = 0; from <= all.size();) {
      const size_t comma = std::min(all.bytes().find(',', from), all.size());
      const Path path = PathOf(in, in.heap().MakeText(all.Sub(from, comma)));
      ASSIGN_OR_RETURN(const std::vector<Value> some, Keys(in, items, path, bound.Truthy(1)));
      for (size_t i = 0; i < items.size(); ++i) lists[i].push_back(some[i]);
      from = comma + 1;
    }
    for (auto& list : lists) keys.push_back(in.heap().MakeList(std::move(list)));
  } else {
    const Path path = bound.IsNone(2) ? Path() : PathOf(in, bound[2]);
    ASSIGN_OR_RETURN(keys, Keys(in, items, path, bound.Truthy(1)));
  }
  RETURN_IF_ERROR(SortByKeys(in, keys, bound.Truthy(0), items));
  return in.heap().MakeList(std::move(items));
}

Result<Value> Unique(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("unique", args, {"case_sensitive", "attribute"}));
  ASSIGN_OR_RETURN(const std::vector<Value> items, in.Elements(self));
  const Path path = bound.IsNone(1) ? Path() : PathOf(in, bound[1]);
  ASSIGN_OR_RETURN(const std::vector<Value> keys, Keys(in, items, path, bound.Truthy(0)));
  const Value seen = in.heap().MakeDict();
  std::vector<Value> fresh;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!Hashable(keys[i])) {
      return Error(std::string("unhashable type: '") + TypeName(keys[i]) + "'");
    }
    if (seen.dict().Find(keys[i]) != nullptr) continue;
    in.heap().SetEntry(seen, keys[i], Value::None());
    fresh.push_back(items[i]);
  }
  return in.heap().MakeList(std::move(fresh), Kind::kGenerator);
}

template <bool kMax>
Result<Value> Extreme(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound,
                   Bound::Bind(kMax ? "max" : "min", args, {"case_sensitive", "attribute"}));
  ASSIGN_OR_RETURN(const std::vector<Value> items, in.Elements(self));
  if (items.empty()) {
    return in.heap().MakeUndefined("there is no smallest or largest item, the sequence is empty");
  }
  const Path path = bound.IsNone(1) ? Path() : PathOf(in, bound[1]);
  ASSIGN_OR_RETURN(const std::vector<Value> keys, Keys(in, items, path, bound.Truthy(0)));
  size_t best = 0;
  for (size_t i = 1; i < items.size(); ++i) {
    ASSIGN_OR_RETURN(const bool better,
                     kMax ? in.Less(keys[best], keys[i]) : in.Less(keys[i], keys[best]));
    if (better) best = i;
  }
  return items[best];
}

Result<Value> Sum(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("sum", args, {"attribute", "start"}));
  ASSIGN_OR_RETURN(const std::vector<Value> items, in.Elements(self));
  const Path path = bound.IsNone(0) ? Path() : PathOf(in, bound[0]);
  Value total = bound.Or(1, Value::Of(Int{0}));
  if (total.Is(Kind::kText)) return Error("sum does not add strings; use join");
  for (const Value& each : items) {
    ASSIGN_OR_RETURN(const Value item, Follow(in, each, path));
    RETURN_IF_ERROR(in.Step());
    ASSIGN_OR_RETURN(total, in.Binary(Operator::kAdd, total, item));
  }
  return total;
}

Result<Value> Batch(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("batch", args, {"linecount", "fill_with"}, 1));
  ASSIGN_OR_RETURN(const Int size, bound.Integer(0, 1));
  ASSIGN_OR_RETURN(const std::vector<Value> items, in.Elements(self));
  std::vector<Value> rows;
  std::vector<Value> row;
  for (const Value& item : items) {
    if (static_cast<Int>(row.size()) == size) {
      rows.push_back(in.heap().MakeList(std::exchange(row, {})));
    }
    row.push_back(item);
  }
  if (!row.empty()) {
    if (!bound.IsNone(1) && static_cast<Int>(row.size()) < size) {
      if (size > static_cast<Int>(in.limits().range_items)) return Error("batch: too many items");
      row.resize(static_cast<size_t>(size), bound[1]);
    }
    rows.push_back(in.heap().MakeList(std::move(row)));
  }
  return in.heap().MakeList(std::move(rows), Kind::kGenerator);
}

Result<Value> Slice(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("slice", args, {"slices", "fill_with"}, 1));
  ASSIGN_OR_RETURN(const Int slices, bound.Integer(0, 1));
  ASSIGN_OR_RETURN(const std::vector<Value> items, in.Elements(self));
  if (slices == 0) return Error("division by zero");
  if (slices > static_cast<Int>(in.limits().range_items)) return Error("slice: too many slices");
  const auto count = static_cast<Int>(items.size());
  std::vector<Value> columns;
  size_t at = 0;
  for (Int i = 0; i < slices; ++i) {
    const bool longer = i < count % slices;
    std::vector<Value> column;
    for (Int k = 0; k < count / slices + longer; ++k) column.push_back(items[at++]);
    if (!bound.IsNone(1) && !longer) column.push_back(bound[1]);
    columns.push_back(in.heap().MakeList(std::move(column)));
  }
  return in.heap().MakeList(std::move(columns), Kind::kGenerator);
}

Result<Value> GroupBy(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound,
                   Bound::Bind("groupby", args, {"attribute", "default", "case_sensitive"}, 1));
  ASSIGN_OR_RETURN(std::vector<Value> items, in.Elements(self));
  const Path path = PathOf(in, bound[0]);
  const Value otherwise = bound.Or(1, Value::None());
  const Value* missing = bound.IsNone(1) ? nullptr : &otherwise;
  ASSIGN_OR_RETURN(std::vector<Value> keys, Keys(in, items, path, bound.Truthy(2), missing));
  const std::vector<Value> by = keys;
  RETURN_IF_ERROR(SortByKeys(in, by, false, items));
  RETURN_IF_ERROR(SortByKeys(in, by, false, keys));
  std::vector<Value> groups;
  for (size_t at = 0; at < items.size();) {
    std::vector<Value> group;
    const size_t first = at;
    while (at < items.size() && Equal(keys[at], keys[first])) group.push_back(items[at++]);
    if (group.empty()) group.push_back(items[at++]);  // a key that is not equal to itself
    ASSIGN_OR_RETURN(const Value name, Follow(in, group.front(), path, missing));
    const Value pair =
        in.heap().MakeList({name, in.heap().MakeList(std::move(group))}, Kind::kTuple);
    pair.list().group = true;
    groups.push_back(pair);
  }
  return in.heap().MakeList(std::move(groups));
}

Result<Value> DictSort(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound,
                   Bound::Bind("dictsort", args, {"case_sensitive", "by", "reverse"}));
  if (self.undefined()) return Error(WhyUndefined(self));
  if (!self.Is(Kind::kDict)) {
    return Error(std::string("dictsort: expected a dict, found ") + TypeName(self));
  }
  ASSIGN_OR_RETURN(const std::string_view by, bound.String(1, "key"));
  if (by != "key" && by != "value") return Error("dictsort sorts by \"key\" or \"value\"");
  ASSIGN_OR_RETURN(std::vector<Value> items, in.Elements(Value::Of(Kind::kItems, self.object)));
  std::vector<Value> keys;
  for (const Value& item : items) {
    const Value& key = item.list().items[by == "value"];
    keys.push_back(bound.Truthy(0) ? key : FoldCase(in, key));
  }
  RETURN_IF_ERROR(SortByKeys(in, keys, bound.Truthy(2), items));
  return in.heap().MakeList(std::move(items));
}

Result<Value> Items(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("items", args, {}));
  if (self.undefined()) return in.heap().MakeList({}, Kind::kGenerator);
  if (!self.Is(Kind::kDict)) {
    return Error(std::string("items: expected a dict, found ") + TypeName(self));
  }
  ASSIGN_OR_RETURN(std::vector<Value> items, in.Elements(Value::Of(Kind::kItems, self.object)));
  return in.heap().MakeList(std::move(items), Kind::kGenerator);
}

Result<Value> Attr(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("attr", args, {"name"}, 1));
  if (!bound[0].Is(Kind::kText)) return Error("attr: expected a name");
  bool refused = false;
  // Unlike a dot, this never means a key.
  if (self.Is(Kind::kDict) && FindMethod(self.kind, bound[0].text().bytes(), &refused) == nullptr) {
    return in.heap().MakeUndefined("'dict object' has no attribute '" + bound[0].text().bytes() +
                                   "'");
  }
  return in.GetAttribute(self, bound[0]);
}

}  // namespace

std::span<const NamedBuiltin> ListFilters() {
  static constexpr NamedBuiltin kFilters[] = {
      {"length", Length},     {"count", Length},      {"default", Default}, {"d", Default},
      {"first", First},       {"last", Last},         {"list", List},       {"join", Join},
      {"reverse", Reverse},   {"sort", Sort},         {"unique", Unique},   {"min", Extreme<false>},
      {"max", Extreme<true>}, {"sum", Sum},           {"batch", Batch},     {"slice", Slice},
      {"groupby", GroupBy},   {"dictsort", DictSort}, {"items", Items},     {"attr", Attr}};
  return kFilters;
}

}  // namespace sluice::jinja
