// From the lines of a capture to rows: a request with its answer is one row, anything else its own.
// Knows the format (docs/trace-format.md) and nothing of the page.
'use strict';

const HANGS_AFTER = 10; // seconds; hosts give up on a silent call between 30 and 60

class Model {
  constructor() {
    this.header = null;
    this.rows = [];
    this.open = new Map();   // connection, asker and id → row: requests that wait for their answer
    this.calls = new Map();  // connection, asker and label → { label, link, from, times, calls, failed, cancelled }
    this.links = new Set();  // names of connections, in a capture of several
    this.methods = new Set();
    this.messages = 0;
    this.requests = 0;
    this.errors = 0;
    this.stray = 0;
    this.lost = 0;
    this.damaged = 0;
    this.last = 0;
    this.ended = null;
    this.changed = new Set(); // rows that became something else since they were looked at
  }

  // Takes one line. Returns whether it was one.
  line(text) {
    let record;
    try { record = JSON.parse(text); } catch { this.damaged++; return false; }
    if (record.kind === 'header') { this.header = record; return true; }
    const at = Number(record.t) || 0;
    this.last = Math.max(this.last, at);
    switch (record.kind) {
      case 'message': this.message(at, record); break;
      case 'stderr': this.add({ at, kind: 'stderr', from: 'stderr', name: shown(record), record }); break;
      case 'fault': this.stray++; this.add({ at, kind: 'stray', from: record.from, name: record.what, bad: true, record }); break;
      case 'gap': this.lost += record.records || 0;
        this.add({ at, kind: 'gap', from: record.from || '', name: `${record.records} missing: ${record.why}`, bad: true, record }); break;
      case 'start': this.add({ at, kind: 'life', from: '', name: `server started as process ${record.pid}`, record }); break;
      case 'close': this.add({ at, kind: 'life', from: record.from, name: record.from === 'client' ? 'client closed' : record.from === 'server' ? 'server closed its output' : 'server closed stderr', record }); break;
      case 'end': this.ended = record;
        this.add({ at, kind: 'life', from: '', bad: record.code !== 0, name: ending(record), record }); break;
      default: this.add({ at, kind: 'life', from: '', name: String(record.kind), record });
    }
    return true;
  }

  add(row) {
    row.n = this.rows.length;
    this.rows.push(row);
    return row;
  }

  message(at, record) {
    this.messages++;
    const size = bytes(record);
    const body = 'message' in record ? record.message : null;
    const all = Array.isArray(body) && body.length ? body : [body];
    for (const one of all) this.one(at, record, one, all.length > 1 ? JSON.stringify(one).length : size);
  }

  one(at, record, body, size) {
    const from = record.from;
    if (record.link) this.links.add(record.link);
    if (!body || typeof body !== 'object' || body.jsonrpc === undefined) {
      this.stray++;
      this.add({ at, kind: 'stray', from, name: shown(record), bad: true, size, record, body });
      return;
    }
    const id = body.id === undefined || body.id === null ? null : JSON.stringify(body.id);
    if (typeof body.method === 'string' && id !== null) return this.request(at, record, body, id, size);
    if (typeof body.method === 'string') {
      const row = this.add({ at, kind: 'note', from, name: body.method, detail: note(body), size, record, body });
      if (body.method === 'notifications/cancelled') this.cancel(record, body);
      this.methods.add(body.method);
      return row;
    }
    this.answer(at, record, body, id, size);
  }

  request(at, record, body, id, size) {
    const from = record.from;
    const p = body.params || {};
    const target = body.method === 'tools/call' || body.method === 'prompts/get' ? p.name : p.uri;
    const label = typeof target === 'string' ? `${body.method} ${target}` : body.method;
    const row = this.add({ at, kind: 'call', from, name: body.method, detail: target, label, id, size, record, body });
    this.requests++;
    this.open.set(key(record, from, id), row);
    this.methods.add(body.method);
    const own = key(record, from, label);
    if (!this.calls.has(own)) this.calls.set(own, { label, link: record.link, from, times: [], calls: 0, failed: 0, cancelled: 0 });
    this.calls.get(own).calls++;
  }

  answer(at, record, body, id, size) {
    const asker = record.from === 'client' ? 'server' : 'client';
    const own = key(record, asker, id);
    const row = this.open.get(own);
    if (!row) {
      this.errors++;
      this.add({ at, kind: 'stray', from: record.from, name: 'an answer to nothing that was asked', detail: 'id ' + id, bad: true, size, record, body });
      return;
    }
    this.open.delete(own);
    row.answer = { at, record, body, size };
    row.took = at - row.at;
    row.size = (row.size || 0) + size;
    const figures = this.calls.get(key(record, row.from, row.label));
    figures.times.push(row.took);
    row.failure = failure(body);
    if (row.failure) { row.bad = true; this.errors++; figures.failed++; }
    row.hay = null;
    this.changed.add(row);
  }

  cancel(record, body) {
    const id = JSON.stringify(body.params && body.params.requestId);
    const row = this.open.get(key(record, record.from, id));
    if (!row) return;
    row.cancelled = true;
    this.calls.get(key(record, row.from, row.label)).cancelled++;
    this.changed.add(row);
  }

  // Requests that wait, the oldest first.
  waiting() { return [...this.open.values()]; }

  // Whether nobody will answer it any more, or it has waited for too long.
  hangs(row, now) {
    return row.kind === 'call' && !row.answer && !row.cancelled && (this.ended || now - row.at > HANGS_AFTER);
  }
}

// What belongs to one asker on one connection.
function key(record, asker, what) { return JSON.stringify([record.link || '', asker, what]); }

function failure(body) {
  if (body.error) return `${body.error.code} ${body.error.message || ''}`;
  const result = body.result || {};
  if (result.isError !== true) return null;
  const first = (result.content || [])[0] || {};
  return 'the tool failed: ' + (typeof first.text === 'string' ? first.text : 'without words');
}

function note(body) {
  const p = body.params || {};
  if (body.method === 'notifications/progress') return `${p.progress}${p.total === undefined ? '' : ' of ' + p.total}${p.message ? ' ' + p.message : ''}`;
  if (body.method === 'notifications/message') return `${p.level}: ${typeof p.data === 'string' ? p.data : JSON.stringify(p.data)}`;
  if (body.method === 'notifications/cancelled') return `request ${JSON.stringify(p.requestId)}`;
  return typeof p.uri === 'string' ? p.uri : '';
}

function ending(record) {
  if (record.error) return 'server could not be started: ' + record.error;
  return record.signal ? `server ended by signal ${record.signal}` : `server ended with code ${record.code}`;
}

// What a record holds, as text.
function shown(record) {
  if ('text' in record) return record.text;
  if ('base64' in record) return 'bytes that are no text: ' + record.base64;
  return JSON.stringify(record.message);
}

function bytes(record) {
  if ('message' in record) return new TextEncoder().encode(JSON.stringify(record.message)).length;
  if ('text' in record) return new TextEncoder().encode(record.text).length;
  return Math.floor((record.base64 || '').length * 3 / 4);
}

function percentile(sorted, percent) {
  return sorted.length ? sorted[Math.max(0, Math.ceil(sorted.length * percent / 100) - 1)] : undefined;
}
