// A JSON value as a tree that opens where one looks. Everything is text; nothing becomes markup.
'use strict';

const SHORT_TEXT = 240;
const FIRST_MEMBERS = 200;

function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key === 'class') node.className = value;
    else if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.filter(child => child !== undefined && child !== null));
  return node;
}

function tree(value, open = 3) {
  return el('div', { class: 'tree' }, branch(null, value, open));
}

function branch(name, value, open) {
  const label = name === null ? null : el('span', { class: 'key' }, String(name), ': ');
  if (value === null || typeof value !== 'object') return el('div', { class: 'leaf' }, label, leaf(value));
  const list = Array.isArray(value);
  const entries = list ? value.map((each, at) => [at, each]) : Object.entries(value);
  if (!entries.length) return el('div', { class: 'leaf' }, label, el('span', { class: 'dim' }, list ? '[ ]' : '{ }'));
  const hint = list ? `${entries.length} items` : entries.slice(0, 4).map(([key]) => key).join(', ') + (entries.length > 4 ? ', …' : '');
  const inside = el('div', { class: 'inside' });
  const node = el('details', {}, el('summary', {}, label, el('span', { class: 'dim' }, list ? `[ ${hint} ]` : `{ ${hint} }`)), inside);
  const fill = () => {
    if (inside.firstChild) return;
    const add = (from, to) => entries.slice(from, to).forEach(([key, each]) => inside.append(branch(key, each, open - 1)));
    add(0, FIRST_MEMBERS);
    if (entries.length > FIRST_MEMBERS) {
      const more = el('button', { type: 'button', class: 'more', onclick: () => { more.remove(); add(FIRST_MEMBERS, entries.length); } }, `${entries.length - FIRST_MEMBERS} more`);
      inside.append(more);
    }
  };
  node.addEventListener('toggle', fill);
  if (open > 0) { node.open = true; fill(); }
  return node;
}

function leaf(value) {
  if (typeof value !== 'string') return el('span', { class: value === null ? 'null' : typeof value }, JSON.stringify(value));
  const box = el('span', { class: 'string' });
  const put = text => { box.textContent = JSON.stringify(text); };
  if (value.length <= SHORT_TEXT) put(value);
  else {
    put(value.slice(0, SHORT_TEXT) + '…');
    const more = el('button', { type: 'button', class: 'more', onclick: () => { put(value); more.remove(); } }, `all ${value.length} characters`);
    return el('span', {}, box, ' ', more, nested(value));
  }
  const inner = nested(value);
  return inner ? el('span', {}, box, inner) : box;
}

// Servers like to put JSON into text: it can be opened as what it is.
function nested(value) {
  if (!/^\s*[[{]/.test(value)) return null;
  let parsed;
  try { parsed = JSON.parse(value); } catch { return null; }
  const node = el('details', { class: 'nested' }, el('summary', {}, 'this text is JSON'));
  node.addEventListener('toggle', () => { if (!node.querySelector('.tree')) node.append(tree(parsed, 2)); });
  return node;
}
