// The whole login against an authorization server that we did not write (oidc-provider), with a real browser:
// our client prints the address, Chromium fills in the login page and agrees, and the client lists the tools of
// a protected MCP server. A second run uses the token that was kept, a third one refreshes it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

const require = createRequire(join(process.env.CACHE, 'package.json'));
const Provider = (await import(require.resolve('oidc-provider'))).default;
const { chromium } = require('playwright-core');

const folder = mkdtempSync(join(tmpdir(), 'taut-login-'));
const store = join(folder, 'state', 'logins.json');
let authority, resource, provider, browser, issuer, url;
let refreshed = 0;

const listen = (server) => new Promise((done) => server.listen(0, '127.0.0.1', () => done(server.address().port)));

before(async () => {
  authority = createServer((request, response) => provider.callback()(request, response));
  issuer = `http://127.0.0.1:${await listen(authority)}`;
  resource = createServer(serve);
  url = `http://127.0.0.1:${await listen(resource)}/mcp`;
  provider = new Provider(issuer, {
    features: {
      registration: { enabled: true },
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, indicator) => {
          assert.equal(indicator, url);
          return { scope: 'read', audience: url, accessTokenFormat: 'opaque', accessTokenTTL: 3600 };
        },
        useGrantedResource: () => true,
      },
    },
    scopes: ['openid', 'offline_access', 'read'],
    cookies: { keys: ['only for this test'] },
  });
  provider.on('grant.success', (ctx) => {
    if (ctx.oidc.params.grant_type === 'refresh_token') refreshed += 1;
  });
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
});

after(async () => {
  await browser?.close();
  authority?.close();
  resource?.close();
  authority?.closeAllConnections();
  resource?.closeAllConnections();
  rmSync(folder, { recursive: true });
});

// A small MCP server that takes only tokens of the authorization server which are for itself.
async function serve(request, response) {
  const json = (status, body, headers = {}) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  if (request.url === '/.well-known/oauth-protected-resource/mcp') {
    return json(200, { resource: url, authorization_servers: [issuer], scopes_supported: ['read'] });
  }
  let body = '';
  for await (const piece of request) body += piece;
  const bearer = request.headers.authorization?.replace(/^Bearer /, '');
  const token = bearer && (await provider.AccessToken.find(bearer));
  if (!token || token.aud !== url) {
    const metadata = new URL('/.well-known/oauth-protected-resource/mcp', url);
    return json(401, {}, { 'www-authenticate': `Bearer resource_metadata="${metadata}", scope="read"` });
  }
  if (request.method !== 'POST') return response.writeHead(405).end();
  const { id, method } = JSON.parse(body);
  if (id === undefined) return response.writeHead(202).end();
  if (method === 'initialize') {
    const serverInfo = { name: 'protected', version: '1' };
    const result = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo };
    return json(200, { jsonrpc: '2.0', id, result });
  }
  if (method === 'tools/list') {
    const tools = [{ name: 'behind-the-login', inputSchema: { type: 'object' } }];
    return json(200, { jsonrpc: '2.0', id, result: { tools } });
  }
  return json(404, { jsonrpc: '2.0', id, error: { code: -32601, message: 'no such method' } });
}

// Runs our client. `visit` gets the address that it prints.
function client(visit) {
  return new Promise((done, failed) => {
    const child = spawn(process.env.LOGIN_CLIENT, [url, store], { stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '', err = '', visited;
    child.stderr.on('data', (data) => (err += data));
    child.stdout.on('data', (data) => {
      out += data;
      const found = /^open (\S+)\n/m.exec(out);
      if (found && !visited) visited = visit(found[1]).catch(failed);
    });
    child.on('exit', async (code) => {
      await visited;
      done({ code, out, err });
    });
  });
}

async function logIn(address) {
  const page = await browser.newPage();
  await page.goto(address);
  await page.fill('input[name=login]', 'somebody');
  await page.fill('input[name=password]', 'anything');
  await page.click('button[type=submit]');
  await page.click('button[type=submit]');
  await page.waitForURL(/127\.0\.0\.1:\d+\/callback/);
  assert.match(await page.textContent('body'), /You can close this window/);
  await page.close();
}

const nobody = async () => assert.fail('nobody should be asked');

test('a user logs in with a browser', { timeout: 120_000 }, async () => {
  const { code, out, err } = await client(logIn);
  assert.equal(code, 0, err);
  assert.match(out, /^tool behind-the-login$/m);
  assert.equal(statSync(store).mode & 0o777, 0o600);
});

test('the token that was kept is used', { timeout: 60_000 }, async () => {
  const { code, out, err } = await client(nobody);
  assert.equal(code, 0, err);
  assert.match(out, /^tool behind-the-login$/m);
});

test('a token that is over is refreshed', { timeout: 60_000 }, async () => {
  const [login] = JSON.parse(readFileSync(store)).logins;
  assert.ok(login.refresh_token, 'there is a refresh token');
  await (await provider.AccessToken.find(login.access_token)).destroy();
  const { code, err } = await client(nobody);
  assert.equal(code, 0, err);
  assert.equal(refreshed, 1);
  assert.notEqual(JSON.parse(readFileSync(store)).logins[0].access_token, login.access_token);
});

test('a user who does not agree is told', { timeout: 60_000 }, async () => {
  rmSync(store);
  const { code, err } = await client(async (address) => {
    const page = await browser.newPage();
    await page.goto(address);
    await page.click('a:has-text("Cancel")');
    await page.waitForURL(/127\.0\.0\.1:\d+\/callback/);
    await page.close();
  });
  assert.equal(code, 1);
  assert.match(err, /access_denied/);
});
