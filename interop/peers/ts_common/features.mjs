// What a client on either TypeScript SDK tries with `taut serve`, and how it reports; see ../../README.md.
// The two SDKs differ in a handful of verbs, which `sdk` has under one name each.

import process from 'node:process';

const UNICODE = 'π ☕ 日本語 👩‍👩‍👧 e\u0301 \u2028 \u2029 \u0085 \u0000 "\\ \t\r\n end';
const DEADLINE = 15_000;

class Missing extends Error {}

/** The SDK has no such thing. */
export const missing = (what) => {
    throw new Missing(what);
};

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function expect(holds, what) {
    if (!holds) throw new Error(what);
}

function within(ms, promise, what) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`${what} after ${ms} ms`)), ms);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Waits until something holds that another message brings about. */
async function until(holds, what, ms = 5_000) {
    const deadline = Date.now() + ms;
    while (!holds()) {
        expect(Date.now() < deadline, what);
        await sleep(10);
    }
}

const text = (result) => result.content.map((block) => block.text ?? '').join('\n');

async function says(s, tool, args, wanted) {
    const said = text(await s.call(tool, args));
    expect(said === wanted, `${tool} answered ${JSON.stringify(said.slice(0, 200))}`);
}

const echo = (s, said) => says(s, 'echo', { text: said }, said);

export const isUrl = (command) => command.startsWith('http://');

/** How a host answers. */
export const host = {
    elicit: (params) =>
        params.requestedSchema?.properties?.right
            ? { action: 'accept', content: { right: true } }
            : { action: 'accept', content: { size: 'large', milk: true, name: 'Ada' } },
    sample: () => ({ role: 'assistant', model: 'a-model', content: { type: 'text', text: 'Lisbon' } }),
    roots: () => ({ roots: [{ uri: 'file:///interop/project', name: 'project' }] }),
};

const features = {
    async list(s) {
        const { tools } = await s.client.listTools();
        expect(tools.some((tool) => tool.name === 'echo'), 'no echo');
    },

    async paging(s) {
        // What every server here has; `taut serve` puts them on more than one page.
        const names = await s.allTools();
        const all = 'echo add slow fail big log ask sample roots add_tool touch'.split(' ');
        const whole = all.every((name) => names.includes(name)) && new Set(names).size === names.length;
        expect(whole, `${names.length} tools: ${names}`);
    },

    call: (s) => echo(s, 'hello'),

    async structured(s) {
        const result = await s.call('add', { a: 2, b: 3 });
        expect(result.structuredContent?.sum === 5, JSON.stringify(result));
    },

    async error(s) {
        const result = await s.call('fail', { reason: 'no beans' });
        expect(result.isError === true && text(result).includes('no beans'), JSON.stringify(result));
        const unknown = await s.call('no_such_tool', {}).then(
            (answer) => answer.isError,
            () => true,
        );
        expect(unknown, 'a tool that does not exist answered');
        await echo(s, 'still there');
    },

    async progress(s) {
        const seen = [];
        const onprogress = (report) => seen.push(report.progress);
        const result = await s.call('slow', { steps: 5, step_ms: 100 }, { onprogress });
        expect(seen.length >= 3, `${seen.length} reports`);
        expect(seen.every((n, i) => i === 0 || n > seen[i - 1]), `not rising: ${seen}`);
        expect(text(result) === 'done after 5 steps', text(result));
    },

    async cancel(s) {
        const abort = new AbortController();
        const options = { signal: abort.signal, onprogress: () => abort.abort('enough') };
        const call = s.call('slow', { steps: 200, step_ms: 50 }, options);
        const failed = await within(8_000, call.then(() => false, () => true), 'nothing');
        expect(failed, 'the call was answered');
        await echo(s, 'still there');
    },

    async log(s) {
        await s.logFrom('debug');
        await s.call('log', { level: 'warning', message: 'careful' });
        const careful = (log) => JSON.stringify(log.data).includes('careful');
        await until(() => s.logs.some(careful), 'nothing was logged');
        expect(s.logs.find(careful).level === 'warning', 'logged at another level');
    },

    async resources(s) {
        const { resources } = await s.client.listResources();
        expect(resources.some((resource) => resource.uri === 'demo://readme'), 'no readme');
        const { contents } = await s.client.readResource({ uri: 'demo://readme' });
        expect(contents[0].text.startsWith('# '), JSON.stringify(contents));
        const found = await s.client.readResource({ uri: 'demo://nope' }).then(() => true, () => false);
        expect(!found, 'what does not exist was read');
    },

    async template(s) {
        const { resourceTemplates } = await s.client.listResourceTemplates();
        const uris = resourceTemplates.map((template) => template.uriTemplate);
        expect(uris.includes('weather://{city}/today'), `${uris}`);
        const { contents } = await s.client.readResource({ uri: 'weather://Lisbon/today' });
        expect(contents[0].text.includes('Lisbon'), JSON.stringify(contents));
    },

    async subscribe(s) {
        await s.subscribe('demo://touched');
        await s.call('touch', {});
        await until(() => s.updates.includes('demo://touched'), 'not told of the change');
    },

    async prompts(s) {
        const { prompts } = await s.client.listPrompts();
        expect(prompts.some((prompt) => prompt.name === 'greet'), 'no greet');
        const args = { name: 'Ada', language: 'German' };
        const { messages } = await s.client.getPrompt({ name: 'greet', arguments: args });
        const said = messages[0].content.text;
        expect(said.includes('Ada') && said.includes('German'), said);
    },

    async completion(s) {
        const ask = async (ref, name, value) =>
            (await s.client.complete({ ref, argument: { name, value } })).completion.values;
        const languages = await ask({ type: 'ref/prompt', name: 'greet' }, 'language', 'Ge');
        expect(`${languages}` === 'German', `${languages}`);
        const cities = await ask({ type: 'ref/resource', uri: 'weather://{city}/today' }, 'city', 'be');
        expect(`${cities}` === 'Berlin,Bern', `${cities}`);
    },

    ask: (s) => says(s, 'ask', {}, 'one large coffee, with milk, for Ada'),
    sample: (s) => says(s, 'sample', { prompt: 'Capital of Portugal?' }, 'Lisbon'),
    roots: (s) => says(s, 'roots', {}, 'file:///interop/project'),

    async changed(s) {
        await s.watchTools();
        await s.call('add_tool', { name: 'later', says: 'here I am' });
        await until(() => s.toolsChanged > 0, 'not told of the change');
        expect((await s.allTools()).includes('later'), 'the new tool is not listed');
        await says(s, 'later', {}, 'here I am');
    },

    unicode: (s) => echo(s, UNICODE),
    mib1: (s) => echo(s, '0123456789abcdef'.repeat(1 << 16)),
    mib10: (s) => echo(s, '0123456789abcdef'.repeat(10 << 16)),

    async hundred(s) {
        await Promise.all(Array.from({ length: 100 }, (_, n) => echo(s, `call ${n}`)));
    },
};

const endings = {
    async 'in-flight'(s) {
        const calls = [1, 2, 3].map(() =>
            s.call('slow', { steps: 600, step_ms: 100 }).then(() => 'answered', () => 'failed'),
        );
        await echo(s, 'under way');
        await within(10_000, s.client.close(), 'not closed');
        const ends = await within(5_000, Promise.all(calls), 'calls still open');
        expect(ends.every((end) => end === 'failed'), `${ends}`);
    },

    async kill(s) {
        const call = s.call('slow', { steps: 600, step_ms: 100 }).then(() => 'answered', () => 'failed');
        await echo(s, 'under way');
        process.kill(s.transport.pid, 'SIGKILL');
        expect((await within(5_000, call, 'no error')) === 'failed', 'the call was answered');
    },
};

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

async function attempt(feature, tried) {
    try {
        await within(DEADLINE, tried(), 'nothing');
        say({ feature, ok: true });
    } catch (error) {
        const note = `${error?.message ?? error}`.slice(0, 300);
        say({ feature, ok: error instanceof Missing ? null : false, note });
    }
}

/** Runs everything; `open(mode, command, args)` connects. */
export async function main(open) {
    const dashes = process.argv.indexOf('--');
    const own = process.argv.slice(2, dashes);
    const mode = own[own.indexOf('--mode') + 1];
    const [command, ...args] = process.argv.slice(dashes + 1);
    const connect = () => within(30_000, open(mode, command, args), 'no connection');
    if (own.includes('--hold')) {
        const s = await connect();
        s.call('slow', { steps: 600, step_ms: 100 }, { timeout: 120_000 }).catch(() => {});
        await sleep(300);
        say({ hold: true });
        return;
    }
    let s;
    await attempt('connect', async () => {
        s = await connect();
        say(s.agreed());
    });
    if (!s) {
        // The SDK ends the server of a connection that failed, and needs time for that.
        setTimeout(() => process.exit(0), 8_000).unref();
        return;
    }
    for (const [feature, tried] of Object.entries(features)) {
        // Over HTTP a request may have 4 MiB.
        if (feature === 'mib10' && isUrl(command)) continue;
        await attempt(feature, () => tried(s));
    }
    await s.client.close();
    // A server that runs already is not ours to end.
    if (isUrl(command)) process.exit(0);
    for (const [feature, tried] of Object.entries(endings)) {
        await attempt(feature, async () => {
            const own = await connect();
            await tried(own);
            await own.client.close().catch(() => {});
        });
    }
    process.exit(0);
}
