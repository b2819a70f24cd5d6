// What a person does with the page, in Chromium; and what a server tries to do to it.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, statSync } from 'node:fs';
import { execFileSync, spawn } from 'node:child_process';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { MARKUP, Session, TAUT, axe, browser, lively } from './session.mjs';

let chrome;
const folder = mkdtempSync(path.join(os.tmpdir(), 'taut-page-'));
before(async () => { chrome = await browser(); });
// A test that failed has not closed its sessions, and they would keep this process.
after(async () => { Session.kill(); await chrome.close(); });

// A page that must not ask anybody else for anything, and must not run what servers say.
async function visit(address, options = {}) {
  const context = await chrome.newContext({ viewport: { width: 1400, height: 900 }, ...options });
  const page = await context.newPage();
  page.problems = [];
  page.on('pageerror', error => page.problems.push(String(error)));
  page.on('console', message => { if (message.type() === 'error') page.problems.push(message.text()); });
  page.on('request', request => { if (!request.url().startsWith(address.replace(/[^/]*$/, ''))) page.problems.push('asked for ' + request.url()); });
  await page.goto(address);
  return page;
}
const number = async (page, id) => Number((await page.textContent('#' + id)).replace(/,/g, ''));
const until = (page, condition, argument) => page.waitForFunction(condition, argument, { timeout: 30000 });
const count = (page, text) => until(page, text => document.getElementById('count').textContent.startsWith(text), text);
// Carries the browser's requests, until it is cut.
async function proxy() {
  const sockets = new Set();
  let broken = false;
  const server = http.createServer((request, answer) => {
    const to = http.request(request.url, { method: request.method, headers: request.headers }, from => {
      answer.writeHead(from.statusCode, from.headers);
      from.pipe(answer);
      answer.on('close', () => from.destroy());
    });
    to.on('error', () => answer.destroy());
    to.end();
  });
  server.on('connection', socket => {
    if (broken) return socket.destroy();
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise(done => server.listen(0, '127.0.0.1', done));
  return {
    address: `http://127.0.0.1:${server.address().port}`,
    cut(on) { broken = on; if (on) sockets.forEach(socket => socket.destroy()); },
    close() { sockets.forEach(socket => socket.destroy()); server.close(); },
  };
}
async function violations(page) {
  await page.addScriptTag({ path: axe }).catch(async () => page.evaluate(readFileSync(axe, 'utf8')));
  return page.evaluate(async () => (await axe.run()).violations.map(each => `${each.id}: ${each.nodes.map(node => node.target).join(' ')}`));
}

test('click, filter, type, switch the theme, use the keyboard', async () => {
  const session = await lively(['--page']);
  const page = await visit(await session.address());
  await until(page, () => document.querySelectorAll('.row:not([hidden])').length > 20);
  assert.equal(await page.textContent('#status'), 'live');

  // Stray output, stderr and failures are marked.
  assert.equal(await number(page, 'n-stray'), 1);
  assert.equal(await number(page, 'n-errors'), 2);
  await page.click('#follow');
  await page.locator('#list').evaluate(list => { list.scrollTop = 0; });
  await page.waitForSelector('.row.stray:has-text("starting up, not JSON")');
  await page.waitForSelector('.row.stderr:has-text("warming up")');

  // Typing searches in everything; one exchange is shown whole, the request beside its answer.
  await page.keyboard.press('/');
  await page.keyboard.type('hello THERE');
  await count(page, '1 of ');
  await page.click('.row:not([hidden])');
  const parts = await page.locator('#detail .part h3').allTextContents();
  assert.deepEqual(parts, ['Request', 'Answer']);
  assert.match(await page.textContent('#detail'), /hello there/);
  await page.fill('#search', 'nested');
  await count(page, '1 of ');
  await page.click('.row:not([hidden])');
  await page.click('#detail .nested summary >> nth=0');
  await page.waitForSelector('#detail .nested .tree:has-text("json: [")');
  await page.keyboard.press('Escape');
  await page.fill('#search', '');

  // Kinds, methods and errors.
  await page.click('.chip.bad');
  await until(page, () => [...document.querySelectorAll('.row:not([hidden])')].every(row => row.className.includes('bad')));
  await page.waitForSelector('.row.bad:has-text("no coffee")');
  await page.click('.chip.bad');
  await page.selectOption('#method', 'tools/list');
  await count(page, '1 of ');
  await page.selectOption('#method', '');

  // By keyboard: down, down, enter; the row is announced.
  await page.focus('#list');
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  const active = await page.getAttribute('#list', 'aria-activedescendant');
  assert.equal(await page.getAttribute('#' + active, 'aria-selected'), 'true');
  assert.match(await page.textContent('#' + active), /from (client|server)/);
  assert.equal(await page.isVisible('#detail'), true);
  await page.keyboard.press('Escape');
  assert.equal(await page.isVisible('#detail'), false);

  // Both themes differ, and the choice is kept.
  const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.click('#theme');
  const light = await colour();
  await page.click('#theme');
  assert.notEqual(await colour(), light);
  assert.equal(await page.getAttribute('#theme', 'aria-label'), 'Theme: dark');
  await page.reload();
  await until(page, () => document.querySelectorAll('.row:not([hidden])').length > 20);
  assert.equal(await page.getAttribute('#theme', 'aria-label'), 'Theme: dark');

  // Latency by tool.
  await page.click('#tab-latency');
  await page.waitForSelector('#pane-latency th:has-text("tools/call slow")');
  await page.click('#tab-time');

  // A part of the time.
  const box = await page.locator('#overview').boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 20, { steps: 4 });
  await page.mouse.up();
  await until(page, () => / of /.test(document.getElementById('count').textContent));
  await page.click('#whole');
  assert.deepEqual(page.problems, []);
  await session.close();
});

test('what is in flight is shown, and what hangs is marked', async () => {
  const session = new Session(['--page'], [TAUT, 'serve']);
  await session.open();
  session.call('slow', { steps: 600, step_ms: 100 });
  const page = await visit(await session.address());
  await page.waitForSelector('#flight button:has-text("tools/call slow")');
  await page.waitForSelector('.row.open:has-text("in flight")');
  await page.waitForSelector('#flight .bad button:has-text("hangs")', { timeout: 20000 });
  await page.waitForSelector('.row.open.bad:has-text("hangs")');
  session.send({ method: 'notifications/cancelled', params: { requestId: 1 } });
  await page.waitForSelector('.row.open:has-text("cancelled")');
  session.child.kill('SIGTERM');
  await session.ended;
  assert.deepEqual(page.problems.filter(problem => !/ERR_/.test(problem)), []);
});

test('ten thousand live messages, no row lost, over a broken connection', async () => {
  const session = new Session(['--page'], [TAUT, 'serve']);
  await session.open();
  const wire = await proxy();
  const page = await visit(await session.address(), { proxy: { server: wire.address, bypass: '<-loopback>' } });
  const CALLS = 5000;
  for (let at = 0; at < CALLS; at += 250) {
    await Promise.all(Array.from({ length: 250 }, (_, one) => session.call('echo', { text: `call ${at + one}` })));
    if (at === 1000) {
      wire.cut(true);
      await page.waitForSelector('#status.lost', { timeout: 20000 });
    }
    if (at === 2000) wire.cut(false);
  }
  const all = 2 * CALLS + 3;
  await until(page, all => Number(document.getElementById('n-messages').textContent.replace(/,/g, '')) >= all, all);
  assert.equal(await number(page, 'n-messages'), all);
  assert.equal(await number(page, 'n-calls'), CALLS + 1);
  assert.equal(await page.textContent('#status'), 'live');
  // Every single one is there, in order, and answered.
  const rows = await page.evaluate(() => model.rows.filter(row => row.kind === 'call' && row.name === 'tools/call').map(row => row.body.params.arguments.text + (row.answer ? '' : ' unanswered')));
  assert.deepEqual(rows, Array.from({ length: CALLS }, (_, at) => `call ${at}`));
  // It follows, stops when somebody scrolls back, and finds any of them.
  await page.waitForSelector('.row:has-text("tools/call")');
  await page.mouse.move(500, 600);
  await page.mouse.wheel(0, -3000);
  await until(page, () => !document.getElementById('follow').checked);
  await page.fill('#search', 'call 3777');
  await count(page, '1 of 5,0');
  await session.close();
  wire.close();
});

test('what a server says is text, wherever it is shown', async () => {
  const script = `printf '%s\\n' "$1" >&2; printf '%s\\n' "$1"; exec "$0" serve`;
  const session = new Session(['--page', '--record', path.join(folder, 'markup.jsonl')], ['sh', '-c', script, TAUT, MARKUP]);
  await session.open();
  await session.call('echo', { text: MARKUP });
  await session.call(MARKUP, { [MARKUP]: MARKUP });
  await session.call('fail', { reason: MARKUP });
  await session.ask(MARKUP, {});
  session.send({ method: MARKUP });
  await session.call('echo', { text: 'end' });
  const look = async page => {
    await until(page, () => document.querySelectorAll('.row:not([hidden])').length >= 9);
    for (const row of await page.locator('.row:not([hidden])').all()) await row.click();
    await page.click('#tab-latency');
    await page.waitForSelector('#pane-latency th:has-text("<img src=x")');
    const found = await page.evaluate(() => ({ pwned: window.pwned, images: document.images.length, bold: document.querySelectorAll('b').length === document.querySelectorAll('.row b').length, scripts: document.scripts.length }));
    assert.equal(found.pwned, undefined);
    assert.equal(found.images, 0);
    assert.equal(found.bold, true);
    assert.ok(found.scripts <= 2);
    assert.deepEqual(page.problems, []);
  };
  await look(await visit(await session.address()));
  await session.close();
  // The same in a document that is sent to somebody.
  const html = path.join(folder, 'markup.html');
  execFileSync(TAUT, ['trace', 'view', path.join(folder, 'markup.jsonl'), '--html', html]);
  assert.equal(statSync(html).mode & 0o777, 0o600);
  await look(await visit('file://' + html));
});

test('nobody without the token, under another name or from another page gets anything', async () => {
  const session = new Session(['--page'], [TAUT, 'serve']);
  await session.open();
  const address = new URL(await session.address());
  const get = (place, headers = {}, method = 'GET') => new Promise((done, failed) => {
    const request = http.request({ host: '127.0.0.1', port: address.port, path: place, method, headers }, answer => {
      let text = '';
      answer.on('data', data => { text += data; if (text.length > 100) answer.destroy(); });
      answer.on('close', () => done({ status: answer.statusCode, headers: answer.headers, text }));
    });
    request.on('error', failed);
    request.end();
  });
  const good = await get(address.pathname);
  assert.equal(good.status, 200);
  assert.match(good.headers['content-security-policy'], /default-src 'none'; script-src 'nonce-[0-9a-f]{32}'/);
  assert.equal(good.headers['access-control-allow-origin'], undefined);
  const other = address.pathname.replace(/^\/./, '/0') === address.pathname ? address.pathname.replace(/^\/./, '/1') : address.pathname.replace(/^\/./, '/0');
  for (const place of ['/', '/events', other, other + 'events', '//', '/' + 'x'.repeat(9000)]) assert.equal((await get(place)).status, 404, place);
  for (const headers of [{ host: 'evil.example' }, { host: 'evil.example:' + address.port }, { origin: 'http://evil.example' }, { origin: 'null' }]) {
    for (const place of [address.pathname, address.pathname + 'events']) {
      const answer = await get(place, headers);
      assert.equal(answer.status, 403);
      assert.doesNotMatch(answer.text, /taut-trace/);
    }
  }
  assert.equal((await get(address.pathname, {}, 'POST')).status, 405);
  await session.close();
});

test('a recording is shown by view --page, and by one that is still written', async () => {
  const file = path.join(folder, 'lively.jsonl');
  const session = await lively(['--quiet', '--record', file]);
  const viewer = spawn(TAUT, ['trace', 'view', '--page', file], { stdio: ['ignore', 'pipe', 'ignore'] });
  const address = await new Promise(done => viewer.stdout.once('data', data => done(String(data).trim())));
  const page = await visit(address);
  await until(page, () => document.querySelectorAll('.row:not([hidden])').length > 20);
  await session.call('echo', { text: 'while it is looked at' });
  await page.waitForSelector('.row:has-text("tools/call")');
  await until(page, () => model.rows.some(row => JSON.stringify(row.body || '').includes('while it is looked at')));
  await session.close();
  await until(page, () => document.getElementById('status').textContent === 'ended');
  viewer.kill();
  assert.deepEqual(page.problems, []);
});

test('both sides of a bridge are shown, and one connection by itself', async () => {
  const session = new Session(['--page', '--revision', '2025-06-18'], [TAUT, 'serve'], 'bridge');
  await session.open();
  await session.call('echo', { text: 'over the bridge' });
  const page = await visit(await session.address(), { bypassCSP: true });
  // The same request on both sides, each with its own answer, although their ids may be equal.
  await until(page, () => model.rows.filter(row => row.label === 'tools/call echo' && row.answer).length === 2);
  assert.equal(await page.evaluate(() => model.errors + model.stray), 0);
  await until(page, () => document.querySelectorAll('#link option').length === 3);
  const links = await page.locator('#link option').allTextContents();
  for (const kind of ['client', 'server']) {
    await page.selectOption('#link', links.find(name => name.startsWith(kind)));
    await until(page, kind => [...document.querySelectorAll('.row.call:not([hidden]) .link')].every(link => link.textContent.startsWith(kind)), kind);
    await until(page, () => [...document.querySelectorAll('.row.call:not([hidden])')].filter(row => row.textContent.includes('tools/call')).length === 1);
  }
  assert.deepEqual(await violations(page), []);
  // Without the policy, which axe needs to be left out, the browser asks for an icon.
  assert.deepEqual(page.problems.filter(problem => !problem.includes('404 (Not Found)')), []);
  await session.close();
});

test('no violations of accessibility, in both themes, narrow and wide', async () => {
  const file = path.join(folder, 'axe.jsonl');
  await (await lively(['--quiet', '--record', file])).close();
  const html = path.join(folder, 'axe.html');
  execFileSync(TAUT, ['trace', 'view', file, '--html', html]);
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [360, 1400, 2560]) {
      const page = await visit('file://' + html, { colorScheme, viewport: { width, height: 900 }, bypassCSP: true });
      await until(page, () => document.querySelectorAll('.row:not([hidden])').length > 5);
      assert.deepEqual(await violations(page), [], `${colorScheme} ${width}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth);
      assert.ok(wide, `nothing stands beside the window at ${width}`);
      await page.locator('.row.call:not([hidden])').first().click();
      assert.deepEqual(await violations(page), [], `${colorScheme} ${width}, one row`);
      await page.keyboard.press('Escape');
      await page.click('#tab-latency');
      assert.deepEqual(await violations(page), [], `${colorScheme} ${width}, latency`);
      await page.context().close();
    }
  }
});
