// Real sessions through `taut trace`: starts it, speaks to the server behind it, and finds its page.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const here = path.dirname(fileURLToPath(import.meta.url));
const cached = createRequire(path.join(here, '.cache', 'package.json'));
export const { chromium } = cached('playwright-core');
export const axe = cached.resolve('axe-core/axe.min.js');
export const TAUT = process.env.TAUT;

export async function browser() {
  return chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}

// A server behind `taut trace` or `taut bridge`, and a client for it.
export class Session {
  static all = [];
  static kill() { for (const session of Session.all) session.child.kill(); }
  constructor(options, server, command = 'trace') {
    const PATH = path.dirname(TAUT) + path.delimiter + process.env.PATH;
    this.child = spawn(TAUT, [command, ...options, '--', ...server], { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, PATH } });
    Session.all.push(this);
    this.waiting = new Map();
    this.next = 0;
    this.stderr = '';
    this.ended = new Promise(done => this.child.on('close', done));
    this.child.stdin.on('error', () => {});
    this.child.stderr.on('data', data => { this.stderr += data; this.look?.(); });
    createInterface({ input: this.child.stdout }).on('line', line => {
      let message;
      try { message = JSON.parse(line); } catch { return; }
      if (message.method === undefined && this.waiting.has(message.id)) {
        this.waiting.get(message.id)(message);
        this.waiting.delete(message.id);
      }
    });
  }
  send(message) { this.child.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n'); }
  ask(method, params) {
    const id = this.next++;
    const answer = new Promise(done => this.waiting.set(id, done));
    this.send({ id, method, params });
    return answer;
  }
  call(name, args = {}, meta) { return this.ask('tools/call', { name, arguments: args, ...(meta ? { _meta: meta } : {}) }); }
  async open() {
    await this.ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page-tests', version: '1' } });
    this.send({ method: 'notifications/initialized' });
  }
  // The address that was told on stderr.
  address() {
    return new Promise(done => {
      this.look = () => {
        const found = /http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]+\//.exec(this.stderr);
        if (found) done(found[0]);
      };
      this.look();
    });
  }
  async close() { this.child.stdin.end(); return this.ended; }
}

export const MARKUP = '<img src=x onerror="window.pwned=1"><script>window.pwned=2</script></script><b>bold</b>';

// A session with one of everything: calls side by side, progress, logs, failures, stray output, stderr.
export async function lively(options) {
  const script = 'echo "starting up, not JSON"; echo "demo: warming up" >&2; exec taut serve';
  const session = new Session(['--as', 'demo', ...options], ['sh', '-c', script]);
  await session.open();
  await session.ask('tools/list');
  await session.ask('resources/list');
  await session.ask('prompts/list');
  await session.call('echo', { text: 'hello there' });
  await session.call('add', { a: 2, b: 3 });
  await Promise.all([
    session.call('slow', { steps: 5, step_ms: 60 }, { progressToken: 'walk' }),
    session.call('slow', { steps: 3, step_ms: 40 }, { progressToken: 'run' }),
    session.call('echo', { text: JSON.stringify({ nested: { json: [1, 2, { deep: true }] } }) }),
    session.call('big', { bytes: 20000 }),
  ]);
  await session.call('log', { level: 'warning', message: 'the disk is nearly full' });
  await session.call('fail', { reason: 'no coffee' });
  await session.call('no_such_tool');
  await session.ask('resources/read', { uri: 'demo://readme' });
  await session.call('echo', { text: MARKUP });
  for (let at = 0; at < 12; at++) await session.call('echo', { text: 'again ' + at });
  return session;
}
