// The TypeScript SDK 2.x as a server, of both eras: the same factory serves them.

import { createServer } from 'node:http';

import { McpServer, ResourceTemplate, completable, createMcpHandler, inputRequired } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

import * as offer from './offer.mjs';
import { fails, says } from './offer.mjs';

function demo() {
    const capabilities = { logging: {}, resources: { subscribe: true, listChanged: true } };
    const server = new McpServer({ name: 'interop-ts2', version: '1.0.0' }, { capabilities });
    tools(server);
    resources(server);
    prompts(server);
    return server;
}

let touched = 0;
const subscribed = new Set();

function tools(server) {
    const tool = (name, shape, run, more = {}) =>
        server.registerTool(name, { description: name, inputSchema: z.object(shape), ...more }, run);

    tool('echo', { text: z.string() }, ({ text }) => says(text));
    for (const name of offer.plainNames) tool(name, { text: z.string() }, ({ text }) => says(text));
    tool(
        'add',
        { a: z.number(), b: z.number() },
        ({ a, b }) => ({ ...says(JSON.stringify({ sum: a + b })), structuredContent: { sum: a + b } }),
        { outputSchema: z.object({ sum: z.number() }) },
    );
    tool('slow', { steps: z.number().default(10), step_ms: z.number().default(100) }, slow);
    tool('fail', { reason: z.string().optional() }, ({ reason }) => fails(reason ?? 'it was asked to fail'));
    tool('big', { bytes: z.number() }, ({ bytes }) =>
        says('0123456789abcdef'.repeat(Math.ceil(bytes / 16)).slice(0, bytes)),
    );
    tool('log', { level: z.string().default('info'), message: z.string() }, async ({ level, message }, ctx) => {
        await ctx.mcpReq.log(level, message, 'demo');
        return says('logged');
    });
    asking(tool);
    tool('add_tool', { name: z.string(), says: z.string() }, (added) => {
        tool(added.name, {}, () => says(added.says));
        return says(`there is a tool ${added.name} now`);
    });
    tool('touch', {}, async () => {
        touched += 1;
        await server.server.sendResourceUpdated({ uri: 'demo://touched' });
        return says(`${touched}`);
    });
    for (const n of Array.from({ length: 5 }, (_, n) => n)) {
        tool(`spare_${n}`, {}, () => says('nothing'));
    }
    page(server);
}

async function slow({ steps, step_ms }, ctx) {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (let step = 0; step < steps; step += 1) {
        if (progressToken !== undefined) {
            const message = `step ${step} of ${steps}`;
            const params = { progressToken, progress: step, total: steps, message };
            await ctx.mcpReq.notify({ method: 'notifications/progress', params });
        }
        await offer.sleep(step_ms, ctx.mcpReq.signal);
        if (ctx.mcpReq.signal.aborted) {
            console.error(`slow: cancelled at step ${step}`);
            break;
        }
    }
    return says(`done after ${steps} steps`);
}

// Written for the modern era; for older clients the SDK turns the questions into requests.
function asking(tool) {
    const ask = (ctx, request, answered) => {
        const answer = ctx.mcpReq.inputResponses?.question;
        return answer ? answered(answer) : inputRequired({ inputRequests: { question: request() } });
    };
    tool('ask', {}, (_args, ctx) =>
        ask(
            ctx,
            () => inputRequired.elicit({ message: 'What would you like?', requestedSchema: offer.COFFEE }),
            (answer) => says(offer.order(answer)),
        ),
    );
    tool('sample', { prompt: z.string() }, ({ prompt }, ctx) => {
        const messages = [{ role: 'user', content: { type: 'text', text: prompt } }];
        const text = (answer) => [answer.content].flat().map((block) => block.text).join('\n');
        return ask(
            ctx,
            () => inputRequired.createMessage({ messages, maxTokens: 200 }),
            (answer) => says(text(answer)),
        );
    });
    tool('roots', {}, (_args, ctx) =>
        ask(
            ctx,
            () => inputRequired.listRoots(),
            (answer) => says(answer.roots.map((root) => root.uri).join('\n')),
        ),
    );
}

// McpServer lists everything at once; its own handler, wrapped, is how a server on it pages.
function page(server) {
    const PAGE = offer.PLAIN === undefined ? 5 : Infinity;
    const listAll = server.server._requestHandlers.get('tools/list');
    server.server.setRequestHandler('tools/list', async (request, ctx) => {
        const { tools, ...rest } = await listAll(request, ctx);
        const start = Number(request.params?.cursor ?? 0);
        const end = start + PAGE;
        return { ...rest, tools: tools.slice(start, end), ...(end < tools.length ? { nextCursor: `${end}` } : {}) };
    });
}

function resources(server) {
    const contents = (uri, text) => ({ contents: [{ uri: uri.href ?? uri, mimeType: 'text/plain', text }] });
    server.registerResource('readme', 'demo://readme', {}, (uri) => contents(uri, offer.README));
    server.registerResource('touched', 'demo://touched', {}, (uri) => contents(uri, `${touched}`));
    const template = new ResourceTemplate('weather://{city}/today', {
        list: undefined,
        complete: { city: (typed) => offer.startingWith(offer.CITIES, typed) },
    });
    server.registerResource('weather', template, {}, (uri, { city }) => contents(uri, offer.weather(city)));
    server.server.setRequestHandler('resources/subscribe', ({ params }) => {
        subscribed.add(params.uri);
        return {};
    });
    server.server.setRequestHandler('resources/unsubscribe', ({ params }) => {
        subscribed.delete(params.uri);
        return {};
    });
}

function prompts(server) {
    server.registerPrompt('hello', { description: 'Say hello.' }, () => ({
        messages: [{ role: 'user', content: { type: 'text', text: 'Say hello.' } }],
    }));
    const language = completable(z.string(), (typed) => offer.startingWith(offer.LANGUAGES, typed)).optional();
    server.registerPrompt('greet', { argsSchema: z.object({ name: z.string(), language }) }, (args) =>
        offer.greeting(args.name, args.language),
    );
}

// What the SDK takes and gives are web requests and responses; Node has its own.
async function answer(handler, request, response) {
    const body = request.method === 'POST' ? await new Response(request).arrayBuffer() : undefined;
    const url = `http://${request.headers.host}${request.url}`;
    const headers = new Headers(Object.entries(request.headers).map(([name, value]) => [name, `${value}`]));
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const answered = await handler.fetch(
        new Request(url, { method: request.method, headers, body, signal: gone.signal }),
    );
    response.writeHead(answered.status, Object.fromEntries(answered.headers));
    response.flushHeaders();
    if (answered.body) for await (const piece of answered.body) response.write(piece);
    response.end();
}

function serveHttp(port) {
    const handler = createMcpHandler(demo, { onerror: (error) => console.error(error) });
    createServer((request, response) => {
        answer(handler, request, response).catch((error) => {
            console.error(error);
            response.destroy();
        });
    }).listen(port, '127.0.0.1');
}

if (offer.HTTP) {
    serveHttp(offer.HTTP);
} else {
    const transport = new StdioServerTransport(process.stdin, process.stdout, { maxBufferSize: 64 << 20 });
    serveStdio(demo, { transport, onerror: (error) => console.error(error) });
}
