// Elements without markup: names, attributes, children. Text is only ever text.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

// h('a', {href: '#x', onclick: f}, 'text', child)
export function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

// The same in SVG.
export function s(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

export const byId = (id) => document.getElementById(id);

// Changes only what differs: what stands still is not read out again.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
