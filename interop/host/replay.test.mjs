// A server in TypeScript from npm: recorded, then replayed against itself, and against its own mock.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { TAUT } from '../../page/session.mjs';

const bin = new URL('../.cache/host/node_modules/.bin/', import.meta.url).pathname;
const server = [path.join(bin, 'mcp-server-everything')];
const folder = mkdtempSync(path.join(os.tmpdir(), 'taut-replay-'));
const env = { HOME: folder, PATH: `${path.dirname(TAUT)}${path.delimiter}${process.env.PATH}` };
const taut = (...words) => {
  const run = spawnSync(TAUT, words, { cwd: folder, env, encoding: 'utf8' });
  return { code: run.status, text: run.stdout + run.stderr };
};

test('a capture of a TypeScript server replays against that server', () => {
  const file = path.join(folder, 'everything.jsonl');
  const smoke = taut('smoke', '--call', 'get-sum', '--args', '{"a":2,"b":3}', '--', TAUT, 'trace', '-q', '--record', file, '--', ...server);
  assert.equal(smoke.code, 0, smoke.text);
  assert.match(readFileSync(file, 'utf8'), /get-sum/);
  for (const words of [server, [TAUT, 'trace', 'mock', file]]) {
    const replay = taut('trace', 'replay', file, '--', ...words);
    assert.equal(replay.code, 0, replay.text);
    assert.match(replay.text, /no difference/);
  }
  // What it answers to another question is a difference.
  const other = path.join(folder, 'other.jsonl');
  taut('smoke', '--call', 'get-sum', '--args', '{"a":2,"b":4}', '--', TAUT, 'trace', '-q', '--record', other, '--', ...server);
  assert.equal(taut('trace', 'diff', file, other).code, 1);
});
