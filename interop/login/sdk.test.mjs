// `taut login` against the authorization servers of the two official SDKs: every way in which a client shows itself,
// refresh, revocation, a token endpoint that is not well or hangs, clients that are forgotten, a logout in another
// process. The servers are sdk_python.py and sdk_typescript.mjs; the command is the one that users have.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, test } from 'node:test';

const { TAUT, CACHE } = process.env;
const SERVERS = {
  Python: [join(CACHE, 'venv/bin/python'), join(import.meta.dirname, 'sdk_python.py')],
  TypeScript: [process.execPath, join(CACHE, 'sdk_typescript.mjs')],
};

// How many runs of the command may wait for something that does not come.
const LIMIT = 60_000;

const children = new Set();
after(() => children.forEach((child) => child.kill('SIGKILL')));

function start(command, args, options) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], ...options });
  children.add(child);
  child.on('exit', () => children.delete(child));
  return child;
}

// A server that has said its address.
async function serve(sdk, port, methods) {
  const [command, ...args] = SERVERS[sdk];
  const child = start(command, [...args, String(port), ...methods]);
  let err = '';
  child.stderr.on('data', (data) => (err += data));
  const lines = createInterface(child.stdout);
  const url = await new Promise((done, failed) => {
    lines.once('line', done);
    child.once('exit', () => failed(new Error(`the server has ended: ${err}`)));
  });
  const control = async (wanted = {}) => {
    const answer = await fetch(new URL('/control', url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(wanted),
    });
    return answer.json();
  };
  const ended = new Promise((done) => child.once('exit', done));
  const end = () => {
    child.kill('SIGKILL');
    return ended;
  };
  return { url, control, end };
}

// Somebody with a home of their own.
class User {
  folder = mkdtempSync(join(tmpdir(), 'taut-login-sdk-'));

  env() {
    const { DISPLAY, WAYLAND_DISPLAY, ...env } = process.env;
    return { ...env, HOME: this.folder, XDG_STATE_HOME: join(this.folder, 'state') };
  }

  start(...args) {
    return start(TAUT, args, { env: this.env() });
  }

  // Runs a command to its end. `visit` gets the address of a login.
  async run(args, visit) {
    const began = Date.now();
    const child = this.start(...args);
    child.stdin.end();
    let out = '', err = '', visited;
    child.stdout.on('data', (data) => (out += data));
    child.stderr.on('data', (data) => {
      err += data;
      const found = /^\s*(http\S+\/authorize\?\S+)\s*\n/m.exec(err);
      if (found && !visited) visited = visit(found[1]);
    });
    const limit = setTimeout(() => child.kill('SIGKILL'), LIMIT);
    const code = await new Promise((done) => child.once('close', done));
    clearTimeout(limit);
    await visited;
    return { code, out, err, seconds: (Date.now() - began) / 1000 };
  }

  async logIn(url, ...more) {
    const done = await this.run(['login', '--no-browser', ...more, url], browse);
    assert.equal(done.code, 0, done.err);
    assert.match(done.out, /^logged in to /);
  }

  async list(url, ...more) {
    return this.run(['list', ...more, url]);
  }

  async works(url) {
    const { code, out, err } = await this.list(url);
    assert.equal(code, 0, err);
    assert.match(out, /behind-the-login/);
  }

  login() {
    return JSON.parse(readFileSync(join(this.folder, 'state/taut/logins.json'))).logins[0];
  }

  gone() {
    rmSync(this.folder, { recursive: true });
  }
}

// Does what a browser does whose user agrees.
async function browse(address) {
  const page = await fetch(address, { redirect: 'manual' });
  const to = page.headers.get('location');
  assert.ok(to, `the page has sent nobody back: ${page.status} ${await page.text()}`);
  const end = await fetch(to);
  assert.match(await end.text(), /You can close this window/);
}

// The server, and a user who has logged in there.
async function scene(sdk, methods, play) {
  const server = await serve(sdk, 0, methods);
  const user = new User();
  try {
    await user.logIn(server.url);
    await play(server, user);
  } finally {
    await server.end();
    user.gone();
  }
}

const WAYS = [
  ['Python', [], 'client_secret_basic', 'basic'],
  ['Python', ['client_secret_post'], 'client_secret_post', 'form'],
  ['Python', ['none'], 'none', 'form'],
  ['TypeScript', [], 'none', 'form'],
  ['TypeScript', ['client_secret_post'], 'client_secret_post', 'form'],
];

for (const [sdk, methods, method, sent] of WAYS) {
  test(`${sdk}: a login and a refresh, ${method}`, { timeout: LIMIT }, async () => {
    await scene(sdk, methods, async ({ url, control }, user) => {
      await user.works(url);
      const before = user.login();
      await control({ expire: true });
      await user.works(url);
      const counted = await control();
      assert.deepEqual(counted.methods, [method]);
      assert.deepEqual(counted.asked, [sent, sent], 'a code and a refresh');
      assert.equal(counted.refreshed, 1);
      assert.notEqual(user.login().refresh_token, before.refresh_token);
      await user.works(url);
    });
  });
}

for (const sdk of ['Python', 'TypeScript']) {
  test(`${sdk}: a token endpoint that is not well costs no login`, { timeout: LIMIT }, async () => {
    await scene(sdk, [], async ({ url, control }, user) => {
      for (const fault of [503, 500, 429, 'hang']) {
        const before = user.login();
        await control({ token: fault, expire: true });
        const failed = await user.list(url, '--max-time', '20s');
        assert.notEqual(failed.code, 0, `${fault}: ${failed.err}`);
        assert.match(failed.err, fault === 'hang' ? /did not come within/ : /try again in a moment/);
        assert.ok(failed.seconds < 18, `${fault}: ${failed.seconds} s`);
        assert.deepEqual(user.login(), before, 'nothing is lost');
        await control();
        await user.works(url);
      }
    });
  });

  test(`${sdk}: a login that was revoked is made again`, { timeout: LIMIT }, async () => {
    await scene(sdk, ['client_secret_post'], async ({ url, control }, user) => {
      const { client_id, client_secret, refresh_token } = user.login();
      const body = new URLSearchParams({ client_id, client_secret, token: refresh_token });
      const revoked = await fetch(new URL('/revoke', url), { method: 'POST', body });
      assert.equal(revoked.status, 200);
      for (let tries = 0; tries < 2; tries += 1) {
        const failed = await user.list(url);
        assert.equal(failed.code, 4);
        assert.match(failed.err, /taut login/);
      }
      assert.equal(user.login().refresh_token, undefined);
      await user.logIn(url);
      await user.works(url);
      assert.equal((await control()).clients, 1, 'it is registered once');
    });
  });

  test(`${sdk}: a client that is forgotten registers anew`, { timeout: LIMIT }, async () => {
    await scene(sdk, [], async ({ url, end }, user) => {
      const before = user.login().client_id;
      await end();
      const again = await serve(sdk, new URL(url).port, []);
      try {
        assert.equal(again.url, url);
        assert.equal((await user.list(url)).code, 4);
        await user.logIn(url);
        await user.works(url);
        assert.notEqual(user.login().client_id, before);
        assert.equal((await again.control()).clients, 1);
      } finally {
        await again.end();
      }
    });
  });

  test(`${sdk}: a logout in another process is final`, { timeout: LIMIT }, async () => {
    await scene(sdk, [], async ({ url, control }, user) => {
      const bridge = user.start('bridge', url);
      const lines = createInterface(bridge.stdout)[Symbol.asyncIterator]();
      const ask = async (id, method, params) => {
        bridge.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
        for (;;) {
          const message = JSON.parse((await lines.next()).value);
          if (message.id === id) return message;
        }
      };
      const clientInfo = { name: 'host', version: '1' };
      const opened = await ask(0, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
      assert.ok(opened.result, JSON.stringify(opened));
      bridge.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
      assert.ok((await ask(1, 'tools/list', {})).result);
      assert.match((await user.run(['logout', url])).out, /is forgotten/);
      await control({ expire: true });
      const refused = await ask(2, 'tools/list', {});
      assert.match(refused.error?.message ?? '', /taut login/, JSON.stringify(refused));
      assert.deepEqual(JSON.parse((await user.run(['logins', '--json'])).out), { logins: [] });
      // After a new login, made elsewhere, the same session goes on.
      await user.logIn(url);
      assert.ok((await ask(3, 'tools/list', {})).result);
      const ended = new Promise((done) => bridge.once('exit', done));
      bridge.stdin.end();
      assert.equal(await ended, 0);
    });
  });
}

// A port that nobody listens on now.
const freePort = () =>
  new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });

test("TypeScript: the SDK's own example, as it is", { timeout: LIMIT }, async () => {
  const [port, authority] = [await freePort(), await freePort()];
  const example = join(CACHE, 'node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js');
  const env = { ...process.env, MCP_PORT: port, MCP_AUTH_PORT: authority };
  const server = start(process.execPath, [example, '--oauth'], { env });
  const ended = new Promise((done) => server.once('exit', done));
  await new Promise((done, failed) => {
    createInterface(server.stdout).on('line', (line) => line.startsWith('MCP Streamable HTTP Server') && done());
    ended.then(() => failed(new Error('the example has ended')));
  });
  const [user, url] = [new User(), `http://localhost:${port}/mcp`];
  await user.logIn(url);
  const { code, out, err } = await user.list(url);
  assert.equal(code, 0, err);
  assert.match(out, /^\s*greet /m);
  server.kill('SIGKILL');
  await ended;
  user.gone();
});

test('TypeScript: a server that serves everyone needs no login', { timeout: LIMIT }, async () => {
  const server = await serve('TypeScript', 0, ['open']);
  const user = new User();
  const nobody = async () => assert.fail('nobody should be asked');
  const { code, out } = await user.run(['login', server.url], nobody);
  assert.equal(code, 0);
  assert.match(out, /^no login is needed: http\S+ serves everyone$/m);
  await server.end();
  user.gone();
});
