// Frame times while 10,000 rows are scrolled, in headless Chromium. Prints one JSON line: times between frames, and
// what the page's own thread works for a frame, in CPU time, which other processes on the machine do not change.
import { Session, TAUT, browser } from './session.mjs';

const session = new Session(['--page'], [TAUT, 'serve']);
await session.open();
const chrome = await browser();
const page = await chrome.newPage({ viewport: { width: 1400, height: 900 } });
const inside = await page.context().newCDPSession(page);
await inside.send('Performance.enable', { timeDomain: 'threadTicks' });
const worked = async () => (await inside.send('Performance.getMetrics')).metrics.find(each => each.name === 'TaskDuration').value * 1000;
await page.goto(await session.address());
const live = page.evaluate(() => new Promise(done => {
  const times = []; let last = performance.now();
  const step = now => { times.push(now - last); last = now; if (model.requests >= 10001) done(times); else requestAnimationFrame(step); };
  requestAnimationFrame(step);
}));
for (let at = 0; at < 10000; at += 250) await Promise.all(Array.from({ length: 250 }, (_, one) => session.call('echo', { text: `call ${at + one}` })));
const following = await live;
const before = await worked();
const scrolling = await page.evaluate(() => new Promise(done => {
  follow(false);
  const list = document.getElementById('list');
  list.scrollTop = 0;
  const times = []; let last = performance.now(), count = 0;
  const step = now => {
    times.push(now - last); last = now;
    list.scrollTop += 970;
    if (++count < 300) requestAnimationFrame(step); else done(times);
  };
  requestAnimationFrame(step);
}));
const work = Number(((await worked() - before) / scrolling.length).toFixed(1));
const figures = times => { const sorted = times.slice(2).sort((a, b) => a - b); const at = p => Number(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))].toFixed(1)); return { frames: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) }; };
console.log(JSON.stringify({ rows: await page.evaluate(() => model.rows.length), scrolling_ms: figures(scrolling), scrolling_cpu_ms: work, following_ms: figures(following) }));
await chrome.close();
await session.close();
