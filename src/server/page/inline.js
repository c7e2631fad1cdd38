// Markdown inside a line: code, emphasis, links. Builds nodes, never markup, so
// that nothing a model writes can be more than text; a link goes to http, https
// or mailto, or stays text.
import {h} from './dom.js';

const SCHEMES = new Set(['http:', 'https:', 'mailto:']);
const DEEPEST = 8;  // further marks are text
const SPECIAL = /[\\`*_~[!<h]/g;
const ESCAPED = /[!-/:-@[-`{-~]/;
const WORD = /[\p{L}\p{N}]/u;
const BRACKETED = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/y;
const BARE = /https?:\/\/[^\s<>"`)\]]+/y;

// Null where the address is not one to be followed.
function link(address, children) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  if (!SCHEMES.has(url.protocol)) return null;
  return h('a', {href: url.href, target: '_blank', rel: 'noopener noreferrer'}, ...children);
}

// The ticks at `at` and where as many close them; `close` is -1 if nowhere.
function ticksAt(text, at) {
  let ticks = 1;
  while (text[at + ticks] === '`') ++ticks;
  const mark = '`'.repeat(ticks);
  let close = text.indexOf(mark, at + ticks);
  while (close >= 0) {
    let run = ticks;
    while (text[close + run] === '`') ++run;
    if (run === ticks) break;
    close = text.indexOf(mark, close + run);
  }
  return {mark, close, end: (close < 0 ? at : close) + ticks};
}

function code(text, at) {
  const {mark, close, end} = ticksAt(text, at);
  if (close < 0) return {node: mark, end};
  let inside = text.slice(at + mark.length, close).replace(/\n/g, ' ');
  if (/^ .*[^ ].* $/.test(inside)) inside = inside.slice(1, -1);
  return {node: h('code', {}, inside), end};
}

// Where `mark` closes again, not inside code; -1: nowhere.
function closing(text, mark, from) {
  const c = mark[0], single = mark.length === 1;
  let tick = text.indexOf('`', from);
  for (let end = text.indexOf(mark, from); end >= 0; end = text.indexOf(mark, end + 1)) {
    while (tick >= 0 && tick < end) {
      const after = ticksAt(text, tick).end;
      if (after > end) end = text.indexOf(mark, after);
      tick = text.indexOf('`', after);
    }
    if (end < 0) return -1;
    if (/\s/.test(text[end - 1]) || text[end - 1] === '\\') continue;
    if (single && (text[end + 1] === c || text[end - 1] === c)) {
      while (text[end + 1] === c) ++end;
      continue;
    }
    while (!single && text[end + mark.length] === c) ++end;
    if (c === '_' && WORD.test(text[end + mark.length] ?? ' ')) continue;
    return end;
  }
  return -1;
}

function emphasis(text, at, depth, missing) {
  const c = text[at], twice = text[at + 1] === c;
  if (c === '~' && !twice) return null;
  const mark = twice ? c + c : c;
  const begin = at + mark.length;
  if (missing.has(mark) || begin >= text.length || /\s/.test(text[begin])) return null;
  if (c === '_' && at > 0 && WORD.test(text[at - 1])) return null;
  const end = closing(text, mark, begin + 1);
  if (end < 0) {
    missing.add(mark);
    return null;
  }
  const name = c === '~' ? 'del' : twice ? 'strong' : 'em';
  return {node: h(name, {}, ...inline(text.slice(begin, end), depth + 1)), end: end + mark.length};
}

// The end of what opens at `at`, nested ones counted; -1: none within a few thousand characters.
function matching(text, at, open, close) {
  let depth = 0;
  for (let i = at; i < text.length && i < at + 4000; ++i) {
    if (text[i] === '\\') ++i;
    else if (text[i] === '\n' && open === '(') return -1;
    else if (text[i] === open) ++depth;
    else if (text[i] === close && --depth === 0) return i;
  }
  return -1;
}

function bracket(text, at, depth, missing) {
  if (missing.has('[')) return null;
  const end = matching(text, at, '[', ']');
  if (end < 0) missing.add('[');
  if (end < 0 || text[end + 1] !== '(') return null;
  const close = matching(text, end + 1, '(', ')');
  if (close < 0) return null;
  const [address] = text.slice(end + 2, close).trim().split(/\s/, 1);
  const node = link(address.replace(/^<(.*)>$/, '$1'), inline(text.slice(at + 1, end), depth + 1));
  return node && {node, end: close + 1};
}

// No picture is fetched: its address is a link.
function image(text, at, depth, missing) {
  return text[at + 1] === '[' ? bracket(text, at + 1, depth, missing) : null;
}

function pointed(text, at) {
  BRACKETED.lastIndex = at;
  const found = BRACKETED.exec(text);
  const node = found && link(found[1], [found[1]]);
  return node && {node, end: at + found[0].length};
}

function bare(text, at) {
  if (at > 0 && WORD.test(text[at - 1])) return null;
  BARE.lastIndex = at;
  const found = BARE.exec(text);
  const address = found?.[0].replace(/[.,;:!?'*_~]+$/, '');
  const node = address && link(address, [address]);
  return node && {node, end: at + address.length};
}

const MARKS = {
  '`': code, '*': emphasis, '_': emphasis, '~': emphasis, '[': bracket, '!': image, '<': pointed,
  'h': bare,
};

// Nodes and strings.
export function inline(text, depth = 0) {
  if (depth > DEEPEST) return [text];
  const out = [], missing = new Set();
  let plain = '';
  for (let at = 0; at < text.length;) {
    SPECIAL.lastIndex = at;
    const next = SPECIAL.exec(text)?.index ?? text.length;
    plain += text.slice(at, next);
    at = next;
    if (at === text.length) break;
    if (text[at] === '\\') {
      const escaped = at + 1 < text.length && ESCAPED.test(text[at + 1]);
      plain += escaped ? text[at + 1] : '\\';
      at += escaped ? 2 : 1;
      continue;
    }
    const made = MARKS[text[at]](text, at, depth, missing);
    if (made) {
      if (plain) out.push(plain);
      plain = '';
      out.push(made.node);
      at = made.end;
    } else {
      // A run of one mark is text as a whole, or its second half would try again.
      let end = at + 1;
      while ('*_~'.includes(text[at]) && text[end] === text[at]) ++end;
      plain += text.slice(at, end);
      at = end;
    }
  }
  if (plain) out.push(plain);
  return out;
}
