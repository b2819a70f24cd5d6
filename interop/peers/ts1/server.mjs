// The TypeScript SDK 1.x as a server.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { ListToolsRequestSchema, SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

import * as offer from './offer.mjs';
import { fails, says } from './offer.mjs';

/** One of each thing, for one client. */
function demo() {
    const capabilities = { logging: {}, resources: { subscribe: true, listChanged: true } };
    const server = new McpServer({ name: 'interop-ts1', version: '1.0.0' }, { capabilities });
    let touched = 0;
    const subscribed = new Set();

    const tool = (name, inputSchema, run, more = {}) =>
        server.registerTool(name, { description: name, inputSchema, ...more }, run);

    tool('echo', { text: z.string() }, ({ text }) => says(text));
    tool(
        'add',
        { a: z.number(), b: z.number() },
        ({ a, b }) => ({ ...says(JSON.stringify({ sum: a + b })), structuredContent: { sum: a + b } }),
        { outputSchema: { sum: z.number() } },
    );
    tool('slow', { steps: z.number().default(10), step_ms: z.number().default(100) }, async ({ steps, step_ms }, extra) => {
        const progressToken = extra._meta?.progressToken;
        for (let step = 0; step < steps; step += 1) {
            if (progressToken !== undefined) {
                const message = `step ${step} of ${steps}`;
                const params = { progressToken, progress: step, total: steps, message };
                await extra.sendNotification({ method: 'notifications/progress', params });
            }
            await offer.sleep(step_ms, extra.signal);
            if (extra.signal.aborted) {
                console.error(`slow: cancelled at step ${step}`);
                break;
            }
        }
        return says(`done after ${steps} steps`);
    });
    tool('fail', { reason: z.string().optional() }, ({ reason }) => fails(reason ?? 'it was asked to fail'));
    tool('big', { bytes: z.number() }, ({ bytes }) => says('0123456789abcdef'.repeat(Math.ceil(bytes / 16)).slice(0, bytes)));
    tool('log', { level: z.string().default('info'), message: z.string() }, async ({ level, message }) => {
        await server.sendLoggingMessage({ level, logger: 'demo', data: message });
        return says('logged');
    });
    tool('ask', {}, async () => {
        const params = { message: 'What would you like?', requestedSchema: offer.COFFEE };
        return says(offer.order(await server.server.elicitInput(params)));
    });
    tool('sample', { prompt: z.string() }, async ({ prompt }) => {
        const messages = [{ role: 'user', content: { type: 'text', text: prompt } }];
        const answer = await server.server.createMessage({ messages, maxTokens: 200 });
        return says(answer.content.text);
    });
    tool('roots', {}, async () => {
        const { roots } = await server.server.listRoots();
        return says(roots.map((root) => root.uri).join('\n'));
    });
    tool('add_tool', { name: z.string(), says: z.string() }, (added) => {
        tool(added.name, {}, () => says(added.says));
        return says(`there is a tool ${added.name} now`);
    });
    tool('touch', {}, async () => {
        touched += 1;
        if (subscribed.has('demo://touched')) {
            await server.server.sendResourceUpdated({ uri: 'demo://touched' });
        }
        return says(`${touched}`);
    });

    const contents = (uri, text) => ({ contents: [{ uri: uri.href ?? uri, mimeType: 'text/plain', text }] });
    server.registerResource('readme', 'demo://readme', {}, (uri) => contents(uri, offer.README));
    server.registerResource('touched', 'demo://touched', {}, (uri) => contents(uri, `${touched}`));
    server.registerResource(
        'weather',
        new ResourceTemplate('weather://{city}/today', {
            list: undefined,
            complete: { city: (typed) => offer.startingWith(offer.CITIES, typed) },
        }),
        {},
        (uri, { city }) => contents(uri, offer.weather(city)),
    );
    server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
        subscribed.add(params.uri);
        return {};
    });
    server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
        subscribed.delete(params.uri);
        return {};
    });

    server.registerPrompt('hello', { description: 'Say hello.' }, () => ({
        messages: [{ role: 'user', content: { type: 'text', text: 'Say hello.' } }],
    }));
    const language = completable(z.string().optional(), (typed) => offer.startingWith(offer.LANGUAGES, typed ?? ''));
    server.registerPrompt('greet', { argsSchema: { name: z.string(), language } }, (args) =>
        offer.greeting(args.name, args.language),
    );

    for (const name of offer.plainNames) tool(name, { text: z.string() }, ({ text }) => says(text));

    // McpServer lists everything at once; its own handler, wrapped, is how a server on it pages.
    const PAGE = offer.PLAIN === undefined ? 5 : Infinity;
    const listAll = server.server._requestHandlers.get('tools/list');
    server.server.setRequestHandler(ListToolsRequestSchema, async (request, extra) => {
        const { tools } = await listAll(request, extra);
        const start = Number(request.params?.cursor ?? 0);
        const end = start + PAGE;
        return { tools: tools.slice(start, end), ...(end < tools.length ? { nextCursor: `${end}` } : {}) };
    });
    return server;
}

// Over HTTP each session has a server of its own.
function serveHttp(port) {
    const sessions = new Map();
    const opened = async () => {
        const transport = new StreamableHTTPServerTransport({
            sessionIdGenerator: randomUUID,
            onsessioninitialized: (id) => sessions.set(id, transport),
            onsessionclosed: (id) => sessions.delete(id),
        });
        await demo().connect(transport);
        return transport;
    };
    createServer(async (request, response) => {
        const id = request.headers['mcp-session-id'];
        const transport = id ? sessions.get(id) : await opened();
        if (!transport) return response.writeHead(404).end();
        await transport.handleRequest(request, response);
    }).listen(port, '127.0.0.1');
}

if (offer.HTTP) {
    serveHttp(offer.HTTP);
} else {
    await demo().connect(new StdioServerTransport(process.stdin, process.stdout, { maxBufferSize: 64 << 20 }));
}
