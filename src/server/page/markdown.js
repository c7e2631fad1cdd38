// Markdown as nodes. A text that grows keeps the blocks that stand: only what
// comes after the first that changed is built again.
import {copyButton} from './clipboard.js';
import {h} from './dom.js';
import {inline} from './inline.js';

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,12})([-*+]|\d{1,9}[.)])(?:[ \t]+|$)/;
const DELIMITER = /^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const DEEPEST = 8;

const blank = (line) => /^\s*$/.test(line);

function begins(line, next) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) ||
      ITEM.test(line) || isTable(line, next);
}

function isTable(line, next) {
  return line.includes('|') && next !== undefined && next.includes('-') && DELIMITER.test(next);
}

function fence(lines, at) {
  const [, mark, info] = FENCE.exec(lines[at]);
  let end = at + 1;
  const closes = (line) => {
    const text = line.trim();
    return text.length >= mark.length && text === mark[0].repeat(text.length);
  };
  while (end < lines.length && !closes(lines[end])) ++end;
  const text = lines.slice(at + 1, end).join('\n');
  const language = info.trim().split(/\s/, 1)[0].slice(0, 30);
  const make = () => h('figure', {class: 'code'},
      h('figcaption', {}, h('span', {}, language || 'text'), copyButton(() => text)),
      h('pre', {tabindex: '0', role: 'group', 'aria-label': `Code, ${language || 'text'}`},
          h('code', {}, text)));
  return {end: Math.min(end + 1, lines.length), make};
}

// Cells of a row; a bar in code or behind a backslash is none.
function cells(line) {
  const out = [];
  let cell = '', ticks = false;
  const text = line.trim().replace(/^\|/, '');
  for (let i = 0; i < text.length; ++i) {
    if (text[i] === '\\' && text[i + 1] === '|') {
      cell += '|';
      ++i;
    } else if (text[i] === '|' && !ticks) {
      out.push(cell.trim());
      cell = '';
    } else {
      if (text[i] === '`') ticks = !ticks;
      cell += text[i];
    }
  }
  if (cell.trim()) out.push(cell.trim());
  return out;
}

function table(lines, at) {
  let end = at + 2;
  while (end < lines.length && !blank(lines[end]) && lines[end].includes('|')) ++end;
  const align = cells(lines[at + 1]).map((cell) =>
    cell.endsWith(':') ? (cell.startsWith(':') ? 'middle' : 'right') : 'left');
  const head = cells(lines[at]);
  const row = (line, name) => {
    const found = cells(line);
    return h('tr', {}, ...head.map((_, i) =>
      h(name, {class: align[i], scope: name === 'th' && 'col'}, ...inline(found[i] ?? ''))));
  };
  const make = () => h('div', {class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Table'},
      h('table', {}, h('thead', {}, row(lines[at], 'th')),
          h('tbody', {}, ...lines.slice(at + 2, end).map((line) => row(line, 'td')))));
  return {end, make};
}

function quote(lines, at, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) ++end;
  const inside = lines.slice(at, end).map((line) => line.replace(QUOTE, ''));
  return {end, make: () => h('blockquote', {}, ...build(inside, depth + 1))};
}

function list(lines, at, depth) {
  const [, indent, mark] = ITEM.exec(lines[at]);
  const ordered = mark.length > 1;
  const items = [];
  let end = at;
  while (end < lines.length) {
    const found = ITEM.exec(lines[end]);
    const own = found && found[1].length <= indent.length + 1;
    if (own) {
      if ((found[2].length > 1) !== ordered || RULE.test(lines[end])) break;
      items.push({width: found[0].length, lines: [lines[end].slice(found[0].length)]});
    } else if (blank(lines[end])) {
      const next = lines[end + 1];
      const goes = next !== undefined && !blank(next) && (ITEM.test(next) || /^\s{2,}/.test(next));
      if (!goes) break;
      items.at(-1).lines.push('');
    } else {
      const {width, lines: inside} = items.at(-1);
      const outside = !/^\s/.test(lines[end]) &&
          (inside.at(-1) === '' || begins(lines[end], lines[end + 1]));
      if (outside) break;
      const spaces = lines[end].length - lines[end].trimStart().length;
      inside.push(lines[end].slice(Math.min(spaces, width)));
    }
    ++end;
  }
  const start = ordered ? Number.parseInt(mark, 10) : 1;
  const make = () => h(ordered ? 'ol' : 'ul', {start: start !== 1 && start},
      ...items.map((item) => h('li', {}, ...tight(item.lines, depth + 1))));
  return {end, make};
}

// An item's own line stands without a paragraph around it.
function tight(lines, depth) {
  const built = build(lines, depth);
  const first = built[0];
  return first?.tagName === 'P' ? [...first.childNodes, ...built.slice(1)] : built;
}

function paragraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && !blank(lines[end]) && !begins(lines[end], lines[end + 1])) ++end;
  const text = lines.slice(at, end).map((line) => line.trim()).join('\n');
  return {end, make: () => h('p', {}, ...inline(text))};
}

// Headings stand one below the other without a gap, from h3 on, whatever marks the text has.
function heading(lines, at, levels) {
  const [, mark, text] = HEADING.exec(lines[at]);
  while (levels.length && levels.at(-1) >= mark.length) levels.pop();
  levels.push(mark.length);
  const name = `h${Math.min(2 + levels.length, 6)}`;
  return {end: at + 1, make: () => h(name, {}, ...inline(text)), more: name};
}

// [{source, make}] of a text's blocks.
function blocks(lines, depth = 0) {
  const out = [], levels = [];
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    if (blank(line)) {
      ++at;
      continue;
    }
    let block;
    if (FENCE.test(line)) block = fence(lines, at);
    else if (HEADING.test(line)) block = heading(lines, at, levels);
    else if (RULE.test(line)) block = {end: at + 1, make: () => h('hr')};
    else if (QUOTE.test(line) && depth < DEEPEST) block = quote(lines, at, depth);
    else if (ITEM.test(line) && depth < DEEPEST) block = list(lines, at, depth);
    else if (isTable(line, lines[at + 1])) block = table(lines, at);
    else block = paragraph(lines, at);
    out.push({source: (block.more ?? '') + lines.slice(at, block.end).join('\n'), make: block.make});
    at = block.end;
  }
  return out;
}

function build(lines, depth) {
  return blocks(lines, depth).map((block) => block.make());
}

const shown = new WeakMap();  // element -> the sources of its children

// Makes `element` show `text`.
export function render(element, text) {
  const now = blocks(text.replace(/\r\n?/g, '\n').split('\n'));
  const before = shown.get(element) ?? [];
  let same = 0;
  while (same < now.length && before[same] === now[same].source) ++same;
  while (element.childNodes.length > same) element.lastChild.remove();
  for (const block of now.slice(same)) element.append(block.make());
  shown.set(element, now.map((block) => block.source));
}
