// The Inspector's command-line mode as a client: one process for each feature; see ../../README.md.

import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const CACHE = dirname(fileURLToPath(import.meta.url));
const NODE = join(CACHE, 'bin/node');
const INSPECTOR = join(CACHE, 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js');
const UNICODE = 'π ☕ 日本語 👩‍👩‍👧 e\u0301 \u2028 \u2029 \u0085 \u0000 "\\ \t\r\n end';

const dashes = process.argv.indexOf('--');
const own = process.argv.slice(2, dashes);
const era = own[own.indexOf('--mode') + 1];
const [command, ...args] = process.argv.slice(dashes + 1);

// Everything it keeps stays here.
const home = join(CACHE, `home-${process.pid}`);
mkdirSync(home, { recursive: true });
const config = join(home, 'servers.json');
const roots = [{ uri: 'file:///interop/project', name: 'project' }];
writeFileSync(config, JSON.stringify({ mcpServers: { taut: { command, args, roots } } }));

function start(...words) {
    const all = [INSPECTOR, '--cli', '--format', 'json', '--protocol-era', era, '--config', config, '--server', 'taut'];
    const env = { ...process.env, HOME: home };
    return spawn(NODE, [...all, ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** What one run came to. */
function ended(child, ms = 15_000) {
    return new Promise((resolve) => {
        let [out, err] = ['', ''];
        const timer = setTimeout(() => child.kill('SIGKILL'), ms);
        child.stdout.on('data', (data) => (out += data));
        child.stderr.on('data', (data) => (err += data));
        child.on('close', (code, signal) => {
            clearTimeout(timer);
            resolve({ code, signal, out, err });
        });
    });
}

async function run(method, ...words) {
    const { code, signal, out, err } = await ended(start('--method', method, ...words));
    const line = out.split('\n').find((text) => text.startsWith('{"result"'));
    if (!line) throw new Error(`${method}: exit ${code ?? signal}: ${err.slice(-300)}`);
    return { code, err, ...JSON.parse(line).result };
}

const call = (tool, args, ...words) =>
    run('tools/call', '--tool-name', tool, '--tool-args-json', JSON.stringify(args), ...words);
const text = (result) => result.content.map((block) => block.text).join('\n');

function expect(holds, what) {
    if (!holds) throw new Error(what);
}

async function says(tool, args, wanted) {
    const said = text(await call(tool, args));
    expect(said === wanted, `${tool} answered ${JSON.stringify(said.slice(0, 200))}`);
}

/** A call under way: the server has it. */
async function underWay() {
    const child = start('--method', 'tools/call', '--tool-name', 'slow', '--tool-args-json', '{"steps":600,"step_ms":100}');
    const end = ended(child, 30_000);
    const deadline = Date.now() + 10_000;
    while (!serving(child.pid)) {
        expect(Date.now() < deadline, 'no server was started');
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    return { child, end, server: serving(child.pid) };
}

/** The process of the server that the Inspector with this number has started. */
function serving(parent) {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
        try {
            const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
            const words = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
            const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
            if (Number(words[1]) === parent && line.includes('serve')) return Number(pid);
        } catch {
            // It has gone meanwhile.
        }
    }
    return undefined;
}

const big = async (bytes) => {
    // Arguments stand on a command line, which is too short for them; the answer is not.
    const said = text(await call('big', { bytes }));
    expect(said.length === bytes, `${said.length} bytes`);
};

const features = {
    async connect() {
        const { protocolVersion } = await run('initialize');
        say({ agreed: protocolVersion, era: protocolVersion >= '2026' ? 'modern' : 'legacy' });
    },
    async list() {
        // With --strict it tells on stderr what in a schema some hosts refuse; there must be nothing. Lines about
        // itself, such as a missing keychain, begin with its name.
        const { tools, code, err } = await run('tools/list', '--strict');
        expect(tools.some((tool) => tool.name === 'echo'), 'no echo');
        const about = err.split('\n').filter((line) => line.trim() && !line.startsWith('[mcp-inspector]'));
        expect(code === 0 && about.length === 0, `--strict: exit ${code}: ${about.join('; ').slice(0, 300)}`);
    },
    async paging() {
        const { tools } = await run('tools/list');
        expect(tools.length === 14, `${tools.length} tools`);
    },
    call: () => says('echo', { text: 'hello' }, 'hello'),
    async structured() {
        const { structuredContent } = await call('add', { a: 2, b: 3 });
        expect(structuredContent?.sum === 5, JSON.stringify(structuredContent));
    },
    async error() {
        const result = await call('fail', { reason: 'no beans' });
        expect(result.isError && result.code === 5 && text(result) === 'no beans', JSON.stringify(result));
    },
    async resources() {
        expect((await run('resources/list')).resources.some((r) => r.uri === 'demo://readme'), 'no readme');
        const { contents } = await run('resources/read', '--uri', 'demo://readme');
        expect(contents[0].text.includes('taut demo'), JSON.stringify(contents));
    },
    async template() {
        const { resourceTemplates } = await run('resources/templates/list');
        expect(resourceTemplates.some((t) => t.uriTemplate === 'weather://{city}/today'), 'no weather');
        const { contents } = await run('resources/read', '--uri', 'weather://Lisbon/today');
        expect(contents[0].text.includes('Lisbon'), JSON.stringify(contents));
    },
    async prompts() {
        expect((await run('prompts/list')).prompts.some((prompt) => prompt.name === 'greet'), 'no greet');
        const { messages } = await run('prompts/get', '--prompt-name', 'greet', '--prompt-args', 'name=Ada', 'language=German');
        const said = messages[0].content.text;
        expect(said.includes('Ada') && said.includes('German'), said);
    },
    roots: () => says('roots', {}, 'file:///interop/project'),
    unicode: () => says('echo', { text: UNICODE }, UNICODE),
    mib1: () => big(1 << 20),
    mib10: () => big(10 << 20),
    async hundred() {
        const load = ['--load', '--load-requests', '100', '--load-concurrency', '100'];
        const { ok, requests } = await call('echo', { text: 'hello' }, ...load);
        expect(requests === 100 && ok === 100, `${ok} of ${requests}`);
    },
    async 'in-flight'() {
        const { child, end } = await underWay();
        child.kill('SIGINT');
        const { signal } = await end;
        expect(signal !== 'SIGKILL', 'it did not end by itself');
    },
    async kill() {
        const { end, server } = await underWay();
        const killed = Date.now();
        process.kill(server, 'SIGKILL');
        const { code } = await end;
        expect(code && Date.now() - killed < 5_000, `exit ${code} after ${Date.now() - killed} ms`);
    },
};

const missing = {
    progress: 'the command-line mode neither asks for reports of progress nor shows them',
    cancel: 'the command-line mode has no way to cancel a call; interrupted, it closes the connection',
    log: 'the command-line mode shows no log notifications',
    subscribe: 'the command-line mode has no method to subscribe',
    completion: 'the command-line mode has no method for completion',
    ask: 'the command-line mode declares no elicitation',
    sample: 'the command-line mode declares no sampling',
    changed: 'each run of the command-line mode makes one request and ends',
};

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

if (own.includes('--hold')) {
    const { child } = await underWay();
    say({ hold: true, pid: child.pid });
} else {
    for (const [feature, tried] of Object.entries(features)) {
        try {
            await tried();
            say({ feature, ok: true });
        } catch (error) {
            say({ feature, ok: false, note: `${error.message}`.slice(0, 300) });
        }
    }
    for (const [feature, note] of Object.entries(missing)) say({ feature, ok: null, note });
}
