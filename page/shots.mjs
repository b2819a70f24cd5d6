// The pictures in docs/trace/, from a real session through `taut trace`.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { TAUT, browser, here, lively } from './session.mjs';

const folder = mkdtempSync(path.join(os.tmpdir(), 'taut-shots-'));
const to = process.env.SHOTS || path.join(here, '..', 'docs', 'trace');
mkdirSync(to, { recursive: true });
const file = process.argv[2] || path.join(folder, 'session.jsonl');
if (!process.argv[2]) await (await lively(['--quiet', '--record', file])).close();
const html = path.join(folder, 'session.html');
execFileSync(TAUT, ['trace', 'view', file, '--html', html]);

const chrome = await browser();
async function shot(name, width, height, colorScheme, act) {
  const page = await chrome.newPage({ viewport: { width, height }, colorScheme });
  await page.goto('file://' + html);
  await page.waitForFunction(() => document.querySelectorAll('.row:not([hidden])').length > 5);
  await act?.(page);
  await page.waitForTimeout(150);
  await page.screenshot({ path: path.join(to, name + '.png') });
  await page.close();
}
const open = text => async page => { await page.fill('#search', text); await page.waitForTimeout(60); await page.locator('.row.call:not([hidden])').first().click(); await page.fill('#search', ''); };
await shot('timeline', 1400, 860, 'light', open('"slow"'));
await shot('timeline-dark', 1400, 860, 'dark', open('no coffee'));
await shot('narrow', 360, 740, 'light');
await shot('narrow-detail', 360, 740, 'dark', open('hello there'));
await shot('wide', 2560, 1300, 'dark', open('nested'));
await shot('latency', 1400, 700, 'light', page => page.click('#tab-latency'));
await chrome.close();
