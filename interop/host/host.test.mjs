// A real agent client from npm, with a model that needs no network, uses a server through `taut trace`: put
// into its own file, driven to a tool call, looked at on the page, replayed, and taken out again.
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { TAUT, browser } from '../../page/session.mjs';
import { model } from './model.mjs';

const cache = path.join(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '..', '.cache', 'host');
const codex = path.join(cache, 'node_modules', '.bin', 'codex');
const home = mkdtempSync(path.join(os.tmpdir(), 'taut-host-'));
const env = { HOME: home, PATH: `${path.dirname(TAUT)}${path.delimiter}${process.env.PATH}`, FAKE_KEY: 'not-a-key', TERM: 'dumb' };
let fake;
before(async () => { fake = await model(); });
after(() => { fake.close(); rmSync(home, { recursive: true, force: true }); });

const config = url => `# written by the test
model = "fake-model"
model_provider = "fake"

[model_providers.fake]
name = "fake"
base_url = "${url}"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false

[mcp_servers.demo] # ours
command = 'taut'
args = [
  "serve", # the demo
]
env = { SETTING = "a-value-of-the-entry" }
`;

function run(program, words, cwd) {
  return new Promise((done, failed) => {
    const child = spawn(program, words, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '', err = '';
    child.stdout.on('data', data => { out += data; });
    child.stderr.on('data', data => { err += data; });
    const late = setTimeout(() => { child.kill('SIGKILL'); failed(new Error(`too slow: ${out}\n${err}`)); }, 90000);
    child.on('close', code => { clearTimeout(late); done({ code, out, err }); });
  });
}

test('codex calls a tool through taut trace, and the page shows it', async () => {
  const file = path.join(home, '.codex', 'config.toml');
  const project = path.join(home, 'project');
  mkdirSync(path.dirname(file));
  mkdirSync(project);
  writeFileSync(file, config(fake.url));
  const taut = (...words) => execFileSync(TAUT, words, { cwd: project, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  taut('trace', '--into', 'demo');
  assert.notEqual(readFileSync(file, 'utf8'), config(fake.url));

  const said = await run(codex, ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', 'call echo'], project);
  assert.equal(said.code, 0, said.out + said.err);
  assert.match(said.out, /hello from the model/);

  const traces = path.join(home, '.local', 'state', 'taut', 'traces');
  const captures = readdirSync(traces).map(name => path.join(traces, name));
  const capture = captures.find(name => readFileSync(name, 'utf8').includes('"tools/call"'));
  const text = readFileSync(capture, 'utf8');
  const records = text.trim().split('\n').map(line => JSON.parse(line));
  assert.equal(records[0].name, 'demo');
  assert.ok(!text.includes('a-value-of-the-entry'));
  const initialize = records.find(record => record.message?.method === 'initialize');
  assert.equal(initialize.from, 'client');
  const call = records.find(record => record.message?.method === 'tools/call');
  assert.equal(call.message.params.arguments.text, 'hello from the model');
  const answer = records.find(record => record.from === 'server' && record.message?.id === call.message.id);
  assert.equal(answer.message.result.content[0].text, 'hello from the model');
  console.log(`codex spoke ${initialize.message.params.protocolVersion}; ${records.length} records`);

  // On the page.
  const html = path.join(home, 'session.html');
  taut('trace', 'view', capture, '--html', html);
  const chrome = await browser();
  const page = await chrome.newPage({ viewport: { width: 1400, height: 860 } });
  await page.goto('file://' + html);
  await page.fill('#search', 'hello from the model');
  await page.waitForFunction(() => document.getElementById('count').textContent.startsWith('1 of '));
  await page.click('.row.call:not([hidden])');
  assert.match(await page.textContent('#detail .part >> nth=1'), /hello from the model/);
  if (process.env.SHOTS) await page.screenshot({ path: path.join(process.env.SHOTS, 'codex.png') });
  await chrome.close();

  // The same again without the host, and the file as it was.
  assert.match(taut('trace', 'replay', capture, '--', 'taut', 'serve'), /no difference/);
  taut('trace', '--out-of', 'demo');
  assert.equal(readFileSync(file, 'utf8'), config(fake.url));
});
