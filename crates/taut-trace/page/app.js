// The page: what is shown of the model, and what a person does with it.
'use strict';

const $ = id => document.getElementById(id);
const model = new Model();
const ROW = 30;
const KINDS = [['call', 'calls'], ['note', 'notifications'], ['stderr', 'stderr'], ['stray', 'stray'], ['life', 'events'], ['bad', 'only errors']];
const state = { search: '', kinds: new Set(['call', 'note', 'stderr', 'stray', 'life', 'gap']), bad: false, method: '', link: '', follow: true, from: null, to: null, selected: -1, live: false };
let visible = [];
let seen = 0;          // rows that were looked at for `visible`
let stale = false;     // `visible` has to be made anew
let dirty = true;      // something has to be drawn
const queue = [];

// ---- time and sizes

function time(seconds) {
  if (seconds === undefined || seconds === null) return '';
  const ms = seconds * 1000;
  if (ms < 9.95) return ms.toFixed(1) + ' ms';
  if (ms < 999.5) return ms.toFixed(0) + ' ms';
  if (ms < 59950) return (ms / 1000).toFixed(1) + ' s';
  return (ms / 60000).toFixed(1) + ' min';
}
function size(bytes) {
  if (!bytes) return '';
  if (bytes < 10000) return bytes + ' B';
  if (bytes < 10e6) return (bytes / 1024).toFixed(0) + ' KiB';
  return (bytes / 1048576).toFixed(0) + ' MiB';
}
function now() { return state.live && !model.ended ? Math.max(model.last, model.clock ? model.last + (performance.now() - model.clock) / 1000 : 0) : model.last; }

// ---- which rows

function hay(row) {
  if (row.hay === undefined || row.hay === null) {
    row.hay = [row.name, row.detail, row.label, JSON.stringify(row.record), row.answer && JSON.stringify(row.answer.record)].filter(Boolean).join('\n').toLowerCase();
  }
  return row.hay;
}
function wanted(row) {
  if (state.bad && !row.bad && !model.hangs(row, now())) return false;
  if (!state.kinds.has(row.kind)) return false;
  if (state.method && row.name !== state.method) return false;
  // What belongs to no connection, such as stderr, belongs to all.
  if (state.link && row.record.link && row.record.link !== state.link) return false;
  if (state.from !== null && (row.at > state.to || (row.answer ? row.answer.at : row.at) < state.from)) return false;
  return !state.search || hay(row).includes(state.search);
}
function choose() {
  if (stale) { visible = []; seen = 0; stale = false; }
  for (; seen < model.rows.length; seen++) if (wanted(model.rows[seen])) visible.push(model.rows[seen]);
}
function refilter() { stale = true; dirty = true; }

// ---- drawing

const list = $('list'), space = $('space');
const pool = [];
let drawn = '';

function draw() {
  choose();
  const height = visible.length * ROW;
  if (space.style.height !== height + 'px') space.style.height = height + 'px';
  if (state.follow && state.live) list.scrollTop = height;
  const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 6);
  const count = Math.min(visible.length - first, Math.ceil(list.clientHeight / ROW) + 12);
  const span = range();
  while (pool.length < count) {
    const node = template();
    pool.push(node);
    space.append(node.root);
  }
  // A row keeps its node while it is in view, so that scrolling touches only what comes in.
  for (let at = 0; at < pool.length; at++) {
    const place = first + (at - first % pool.length + pool.length) % pool.length;
    fill(pool[at], place < first + count ? visible[place] : null, place, span);
  }
  const active = visible.findIndex(row => row.n === state.selected);
  if (active >= first && active < first + count) list.setAttribute('aria-activedescendant', 'row-' + state.selected);
  else list.removeAttribute('aria-activedescendant');
  totals();
  flight();
  overview();
}

function range() {
  if (state.from !== null) return [state.from, Math.max(state.to, state.from + 1e-6)];
  return [0, Math.max(now(), 1e-3)];
}

function template() {
  const cell = name => el('span', { class: name });
  const node = { at: cell('at'), way: cell('way'), what: cell('what'), outcome: cell('outcome'), took: cell('took'), size: cell('size'), fall: cell('fall'), bar: el('i') };
  node.link = el('span', { class: 'link' }); node.name = el('b'); node.detail = el('em'); node.brief = el('small'); node.who = el('span', { class: 'hidden' });
  node.what.append(node.link, node.name, ' ', node.detail, ' ', node.brief);
  node.fall.append(node.bar);
  node.root = el('div', { class: 'row', role: 'option' }, node.who, node.at, node.way, node.what, node.outcome, node.took, node.size, node.fall);
  node.root.addEventListener('click', () => { if (node.row) select(node.row, true); });
  return node;
}

const ARROWS = { client: '→', server: '←', stderr: '!' };
function fill(node, row, place, [from, to]) {
  node.row = row;
  const { root } = node;
  if (!row) { root.hidden = true; return; }
  root.hidden = false;
  const open = row.kind === 'call' && !row.answer;
  const hangs = model.hangs(row, now());
  const outcome = row.kind !== 'call' ? (row.kind === 'stray' ? 'stray output' : '') : row.failure ? row.failure : row.answer ? 'ok' : row.cancelled ? 'cancelled' : hangs ? 'hangs' : 'in flight';
  root.id = 'row-' + row.n;
  root.style.transform = `translateY(${place * ROW}px)`;
  root.className = `row ${row.kind} ${row.from}${row.bad || hangs ? ' bad' : ''}${open ? ' open' : ''}${row.n === state.selected ? ' selected' : ''}`;
  root.setAttribute('aria-selected', row.n === state.selected);
  root.setAttribute('aria-posinset', place + 1);
  root.setAttribute('aria-setsize', visible.length);
  text(node.at, row.at.toFixed(3));
  text(node.way, ARROWS[row.from] || '·');
  text(node.who, row.from ? `from ${row.from}` : '');
  // The name of a tool says more than the method that calls it.
  const target = row.kind === 'call' && row.detail;
  text(node.link, row.record.link ? cut(row.record.link) : '');
  text(node.name, cut(target || row.name.replace(/^notifications\//, '')));
  text(node.detail, cut(target ? row.name : row.detail || ''));
  text(node.brief, target ? brief(row) : '');
  text(node.outcome, cut(outcome));
  text(node.took, row.answer ? time(row.took) : open ? time(now() - row.at) : '');
  text(node.size, size(row.size));
  const end = row.answer ? row.answer.at : open && !row.cancelled ? now() : row.at;
  const left = Math.min(100, Math.max(0, (row.at - from) / (to - from) * 100));
  const wide = Math.max(0, Math.min(100, (end - from) / (to - from) * 100) - left);
  node.bar.style.left = left + '%';
  node.bar.style.width = wide + '%';
}
// What a call is given, as far as it fits on a line.
function brief(row) {
  if (row.brief === undefined) {
    const given = (row.body && row.body.params && row.body.params.arguments) || {};
    row.brief = typeof given === 'object' ? Object.entries(given).map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(' ').slice(0, 120) : '';
  }
  return row.brief;
}
function text(node, value) { if (node.textContent !== value) node.textContent = value; }
function cut(value) { value = String(value); return value.length > 200 ? value.slice(0, 199) + '…' : value; }

function totals() {
  text($('n-messages'), model.messages.toLocaleString('en'));
  text($('n-calls'), model.requests.toLocaleString('en'));
  text($('n-errors'), model.errors.toLocaleString('en'));
  text($('n-stray'), model.stray.toLocaleString('en'));
  text($('n-time'), time(model.last));
  const all = model.rows.length, shown = visible.length;
  const missing = model.lost ? `, ${model.lost.toLocaleString('en')} records missing` : '';
  text($('count'), shown === all ? `${all.toLocaleString('en')} rows${missing}` : `${shown.toLocaleString('en')} of ${all.toLocaleString('en')} rows${missing}`);
  const header = model.header || {};
  text($('server'), header.name || '');
  text($('command'), (header.command || []).join(' ') + (header.started ? '  ·  ' + header.started.replace('T', ' ').replace(/\.\d+Z$/, ' UTC') : ''));
  options($('method'), 'all methods', model.methods, (a, b) => a < b ? -1 : 1);
  options($('link'), 'all connections', model.links, (a, b) => a.localeCompare(b, 'en', { numeric: true }));
  $('link').parentNode.hidden = !model.links.size;
}
function options(select, all, names, order) {
  if (select.length - 1 === names.size) return;
  const kept = select.value;
  select.replaceChildren(el('option', { value: '' }, all), ...[...names].sort(order).map(name => el('option', { value: name }, cut(name))));
  select.value = kept;
}

function flight() {
  const box = $('flight');
  const open = model.waiting().slice(0, 50);
  const rest = model.open.size - open.length;
  const key = open.map(row => row.n + (model.hangs(row, now()) ? '!' : '')).join() + rest;
  if (box.dataset.key !== key) {
    box.dataset.key = key;
    box.replaceChildren(...open.map(row => el('li', { class: model.hangs(row, now()) ? 'bad' : '' },
      el('button', { type: 'button', onclick: () => select(row, true) }, `${ARROWS[row.from]} ${cut(row.label)} `, el('span', { class: 'since' }), model.hangs(row, now()) ? ' hangs' : ''))));
    if (rest > 0) box.append(el('li', {}, `and ${rest} more`));
    if (!open.length) box.append(el('li', { class: 'dim' }, 'nothing waits for an answer'));
  }
  [...box.querySelectorAll('.since')].forEach((node, at) => text(node, time(now() - open[at].at)));
}

// ---- the picture of all of the time

function overview() {
  const canvas = $('overview');
  const wide = canvas.clientWidth, high = canvas.clientHeight, scale = window.devicePixelRatio || 1;
  const key = `${model.rows.length} ${model.changed.size} ${wide} ${state.from} ${state.to} ${document.documentElement.dataset.theme} ${model.open.size ? Math.floor(now() * 4) : ''} ${stale}`;
  if (key === drawn || !wide) return;
  drawn = key;
  if (canvas.width !== Math.round(wide * scale)) { canvas.width = Math.round(wide * scale); canvas.height = Math.round(high * scale); }
  const pen = canvas.getContext('2d');
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, wide, high);
  const style = getComputedStyle(document.documentElement);
  const colour = name => style.getPropertyValue(name).trim();
  const all = Math.max(now(), 1e-3);
  const x = at => at / all * wide;
  const colours = { ok: colour('--bar'), bad: colour('--bad'), note: colour('--note'), stderr: colour('--warn') };
  // Lanes, so that calls at the same time do not hide each other; as few as are needed.
  const ends = [];
  const lanes = Math.max(1, Math.floor((high - 12) / 4));
  const bars = [];
  for (const row of model.rows) {
    if (row.kind === 'call') {
      let lane = ends.findIndex(end => end <= row.at);
      if (lane < 0) lane = ends.length < lanes ? ends.length : lanes - 1;
      const end = row.answer ? row.answer.at : row.cancelled ? row.at : all;
      ends[lane] = end;
      bars.push([row.bad || model.hangs(row, now()), lane, x(row.at), Math.max(1.5, x(end) - x(row.at))]);
    } else if (row.kind !== 'life') {
      pen.fillStyle = row.bad ? colours.bad : row.kind === 'stderr' ? colours.stderr : colours.note;
      pen.fillRect(x(row.at), high - 6, 1.5, 5);
    }
  }
  const thick = Math.min(9, (high - 12) / Math.max(1, ends.length));
  for (const [bad, lane, left, long] of bars) {
    pen.fillStyle = bad ? colours.bad : colours.ok;
    pen.fillRect(left, 4 + lane * thick, long, Math.max(2, thick - 1.5));
  }
  if (state.from !== null) {
    pen.fillStyle = colour('--shade');
    pen.fillRect(0, 0, x(state.from), high);
    pen.fillRect(x(state.to), 0, wide, high);
  }
}

{
  const canvas = $('overview');
  let began = null;
  const at = event => Math.min(1, Math.max(0, event.offsetX / canvas.clientWidth)) * Math.max(now(), 1e-3);
  canvas.addEventListener('pointerdown', event => { began = at(event); canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener('pointermove', event => { if (began !== null) zoom(Math.min(began, at(event)), Math.max(began, at(event))); });
  canvas.addEventListener('pointerup', event => {
    if (began !== null && Math.abs(at(event) - began) / Math.max(now(), 1e-3) < 0.003) zoom(null, null);
    began = null;
  });
}
function zoom(from, to) {
  state.from = from; state.to = to;
  $('whole').hidden = from === null;
  text($('scale'), from === null ? 'waterfall' : `waterfall, ${from.toFixed(3)} to ${to.toFixed(3)} s`);
  refilter();
}
$('whole').addEventListener('click', () => { zoom(null, null); list.focus(); });

// ---- one row in full

function select(row, show) {
  state.selected = row.n;
  if (show) detail(row);
  dirty = true;
}
function detail(row) {
  const box = $('detail');
  const way = row.from === 'client' ? 'client → server' : row.from === 'server' ? 'server → client' : row.from;
  const close = el('button', { type: 'button', class: 'close', 'aria-label': 'Close', onclick: shut }, '×');
  const title = row.label || row.name;
  const head = el('div', { class: 'head' }, el('h2', {}, cut(title)), close);
  const facts = el('dl', { class: 'facts' });
  const fact = (name, value, bad) => { if (value) facts.append(el('div', { class: bad ? 'bad' : '' }, el('dt', {}, name), el('dd', {}, String(value)))); };
  fact('connection', row.record.link); fact('way', way); fact('at', row.at.toFixed(6) + ' s');
  fact('took', row.answer && time(row.took)); fact('id', row.id); fact('framing', row.record.framing);
  fact('outcome', row.failure || (row.cancelled ? 'cancelled' : row.kind === 'call' && !row.answer ? (model.hangs(row, now()) ? 'no answer: it hangs' : 'in flight') : ''), row.failure || model.hangs(row, now()));
  fact('masked', (row.record.masked || []).length + ((row.answer && row.answer.record.masked) || []).length || '');
  const parts = [part(row.kind === 'call' ? 'Request' : row.kind === 'stderr' ? 'Line' : 'Message', row.record, row.body)];
  if (row.answer) parts.push(part(row.failure ? 'Answer: failed' : 'Answer', row.answer.record, row.answer.body));
  box.replaceChildren(head, facts, el('div', { class: parts.length > 1 ? 'pair' : 'single' }, ...parts));
  box.hidden = false;
  document.body.classList.add('detailed');
  box.setAttribute('aria-label', 'Selected: ' + cut(title));
}
function part(title, record, body) {
  const raw = body === undefined || body === null ? shown(record) : JSON.stringify(body, null, 2);
  const pre = el('pre', { hidden: true, tabindex: 0 }, raw);
  const view = body === undefined || body === null ? el('pre', { class: 'text', tabindex: 0 }, raw) : tree(body, raw.length < 4000 ? 8 : 3);
  const toggle = el('button', { type: 'button', 'aria-pressed': 'false', onclick: () => {
    pre.hidden = !pre.hidden; view.hidden = !pre.hidden; toggle.setAttribute('aria-pressed', String(!pre.hidden));
  } }, 'text');
  const copy = el('button', { type: 'button', onclick: async () => {
    try { await navigator.clipboard.writeText(raw); text(copy, 'copied'); } catch { text(copy, 'not allowed'); }
  } }, 'copy');
  const bar = el('div', { class: 'part-head' }, el('h3', {}, title), view.classList.contains('tree') ? toggle : null, copy);
  return el('section', { class: 'part' }, bar, view, view.classList.contains('tree') ? pre : null);
}
function shut() {
  $('detail').hidden = true;
  document.body.classList.remove('detailed');
  list.focus();
  dirty = true;
}

// ---- latency by tool

function latency() {
  const pane = $('pane-latency');
  const all = [...model.calls.values()].map(each => {
    const times = [...each.times].sort((a, b) => a - b);
    return { ...each, p50: percentile(times, 50), p90: percentile(times, 90), p99: percentile(times, 99), max: times[times.length - 1], sum: times.reduce((a, b) => a + b, 0), times };
  }).sort((a, b) => b.sum - a.sum);
  const most = Math.max(...all.map(each => each.max || 0), 1e-6);
  const head = ['what', 'calls', 'failed', 'no answer', 'p50', 'p90', 'p99', 'slowest', 'spread'];
  const place = seconds => Math.max(0, Math.min(100, (Math.log10(Math.max(seconds, 1e-5)) + 5) / (Math.log10(Math.max(most, 1e-4)) + 5) * 100));
  const rows = all.map(each => {
    const spread = el('span', { class: 'spread', 'aria-hidden': 'true' });
    for (const value of thin(each.times)) { const dot = el('i'); dot.style.left = place(value) + '%'; spread.append(dot); }
    const missing = each.calls - each.times.length - each.cancelled;
    return el('tr', {}, el('th', { scope: 'row' }, each.link ? el('span', { class: 'link' }, cut(each.link)) : null, each.from === 'server' ? '← ' : '', cut(each.label)), el('td', {}, String(each.calls)),
      el('td', { class: each.failed ? 'bad' : '' }, String(each.failed)), el('td', { class: missing > 0 ? 'bad' : '' }, String(Math.max(0, missing))),
      ...[each.p50, each.p90, each.p99, each.max].map(value => el('td', {}, time(value) || '–')), el('td', { class: 'wide' }, spread));
  });
  pane.replaceChildren(el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Latency by call' }, el('table', {}, el('caption', {}, 'How long calls took, those that took the most time in all first. The spread is logarithmic.'),
    el('thead', {}, el('tr', {}, ...head.map(name => el('th', { scope: 'col' }, name)))), el('tbody', {}, ...rows))));
}
function thin(times) {
  if (times.length <= 200) return times;
  return Array.from({ length: 200 }, (_, at) => times[Math.floor(at * times.length / 200)]);
}
function tab(name) {
  for (const each of ['time', 'latency']) {
    const on = each === name;
    $('tab-' + each).setAttribute('aria-selected', String(on));
    $('tab-' + each).tabIndex = on ? 0 : -1;
    $('pane-' + each).hidden = !on;
  }
  if (name === 'latency') latency();
  dirty = true;
}
for (const name of ['time', 'latency']) $('tab-' + name).addEventListener('click', () => tab(name));
document.querySelector('.tabs').addEventListener('keydown', event => {
  if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
  const name = $('pane-time').hidden ? 'time' : 'latency';
  tab(name); $('tab-' + name).focus(); event.preventDefault();
});

// ---- what a person does

$('search').addEventListener('input', event => { state.search = event.target.value.trim().toLowerCase(); refilter(); });
$('method').addEventListener('change', event => { state.method = event.target.value; refilter(); });
$('link').addEventListener('change', event => { state.link = event.target.value; refilter(); });
$('follow').addEventListener('change', event => { state.follow = event.target.checked; dirty = true; });
for (const [kind, label] of KINDS) {
  const on = kind !== 'bad';
  const button = el('button', { type: 'button', 'aria-pressed': String(on), class: 'chip ' + kind, onclick: () => {
    const now = button.getAttribute('aria-pressed') !== 'true';
    button.setAttribute('aria-pressed', String(now));
    if (kind === 'bad') state.bad = now; else if (now) state.kinds.add(kind); else state.kinds.delete(kind);
    refilter();
  } }, label);
  $('kinds').append(button);
}
function follow(on) { state.follow = on; $('follow').checked = on; }
// Whoever scrolls back wants to look, not to follow; whoever scrolls to the end wants to follow again.
let byHand = 0;
const hand = back => { byHand = performance.now(); if (back && state.live) follow(false); };
list.addEventListener('wheel', event => hand(event.deltaY < 0), { passive: true });
list.addEventListener('touchmove', () => hand(true), { passive: true });
list.addEventListener('pointerdown', event => { if (event.target === list) hand(true); });
list.addEventListener('scroll', () => {
  const end = list.scrollHeight - list.clientHeight - list.scrollTop < ROW * 2;
  if (state.live && !state.follow && end && performance.now() - byHand < 1000) follow(true);
  dirty = true;
}, { passive: true });
list.addEventListener('keydown', event => {
  const at = visible.findIndex(row => row.n === state.selected);
  const page = Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity, j: 1, k: -1 };
  if (event.key in steps && visible.length) {
    const next = Math.min(visible.length - 1, Math.max(0, at < 0 && steps[event.key] > 0 && steps[event.key] < Infinity ? 0 : at + steps[event.key]));
    if (state.live) follow(false);
    select(visible[next], !$('detail').hidden);
    const top = next * ROW;
    if (top < list.scrollTop) list.scrollTop = top;
    if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
    event.preventDefault();
  } else if ((event.key === 'Enter' || event.key === ' ') && at >= 0) {
    detail(visible[at]); dirty = true; event.preventDefault();
  }
});
document.addEventListener('keydown', event => {
  const typing = /^(INPUT|SELECT)$/.test(event.target.tagName) && event.target.type !== 'checkbox';
  if (event.key === 'Escape') {
    if (event.target.id === 'search') { event.target.value = ''; state.search = ''; refilter(); list.focus(); }
    else if (!$('detail').hidden) shut();
    else if (state.from !== null) zoom(null, null);
  } else if (!typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const press = kind => document.querySelector('.chip.' + kind).click();
    const keys = { '/': () => $('search').focus(), e: () => press('bad'), f: () => $('follow').click(), t: () => $('theme').click(), l: () => tab($('pane-time').hidden ? 'time' : 'latency') };
    if (event.key in keys) { keys[event.key](); event.preventDefault(); }
  }
});

const THEMES = [['auto', '◐', 'as the system'], ['light', '☀', 'light'], ['dark', '☾', 'dark']];
function theme(name) {
  const [key, sign, words] = THEMES.find(each => each[0] === name) || THEMES[0];
  if (key === 'auto') delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = key;
  text($('theme'), sign);
  $('theme').setAttribute('aria-label', 'Theme: ' + words);
  $('theme').dataset.theme = key;
  try { localStorage.setItem('taut-trace-theme', key); } catch { /* a file may not keep anything */ }
  drawn = ''; dirty = true;
}
$('theme').addEventListener('click', () => {
  const at = THEMES.findIndex(each => each[0] === $('theme').dataset.theme);
  theme(THEMES[(at + 1) % THEMES.length][0]);
});
{
  let kept = 'auto';
  try { kept = localStorage.getItem('taut-trace-theme') || 'auto'; } catch { /* the same */ }
  theme(kept);
}

// ---- where the lines come from

function status(name, words) { $('status').className = 'status ' + name; text($('status'), words); }

function frame() {
  const until = performance.now() + 8;
  let took = 0;
  while (took < queue.length && (took % 64 || performance.now() < until)) model.line(queue[took++]);
  if (took) {
    queue.splice(0, took);
    model.clock = performance.now();
    dirty = true;
  }
  if (model.changed.size) {
    const matters = state.bad || state.search || state.from !== null;
    if (matters && !stale) stale = true;
    model.changed.clear();
    drawn = '';
  }
  const ticking = state.live && model.open.size && !model.ended;
  if (dirty || (ticking && performance.now() - (frame.last || 0) > 100)) {
    dirty = false;
    frame.last = performance.now();
    if ($('pane-time').hidden) { totals(); flight(); if (took) latency(); } else draw();
  }
  if (model.ended && state.live && !queue.length) status('ended', model.ended.code === 0 ? 'ended' : 'ended badly');
  requestAnimationFrame(frame);
}

function start() {
  const data = $('capture');
  if (data) {
    for (const line of data.textContent.split('\n')) if (line) model.line(line);
    state.follow = false;
    document.querySelector('.check').hidden = true;
    status('ended', model.ended ? (model.ended.code === 0 ? 'ended' : 'ended badly') : 'a recording');
  } else {
    state.live = true;
    const source = new EventSource('events');
    source.onopen = () => status('live', 'live');
    source.onmessage = event => { queue.push(event.data); };
    source.onerror = () => {
      if (model.ended) source.close();
      else status('lost', 'connection lost, trying again');
    };
    source.addEventListener('still', () => { state.live = false; follow(false); status('ended', 'a recording'); source.close(); });
  }
  new ResizeObserver(() => { drawn = ''; dirty = true; }).observe(list);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { drawn = ''; dirty = true; });
  requestAnimationFrame(frame);
}
start();
