// The TypeScript SDK 2.x as a client: by default it shakes hands, `auto` probes, `modern` is pinned.

import { Client, LOG_LEVEL_META_KEY, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { host, isUrl, main } from './features.mjs';

const MODES = {
    default: undefined,
    auto: { mode: 'auto' },
    modern: { mode: { pin: '2026-07-28' } },
};

async function open(mode, command, args) {
    const capabilities = { elicitation: {}, sampling: {}, roots: { listChanged: true } };
    const info = { name: 'interop-ts2', version: '1.0.0' };
    const client = new Client(info, { capabilities, versionNegotiation: MODES[mode] });
    const transport = isUrl(command)
        ? new StreamableHTTPClientTransport(new URL(command))
        : new StdioClientTransport({ command, args, maxBufferSize: 64 << 20 });
    client.setRequestHandler('elicitation/create', ({ params }) => host.elicit(params));
    client.setRequestHandler('sampling/createMessage', ({ params }) => host.sample(params));
    client.setRequestHandler('roots/list', () => host.roots());
    const modern = () => client.getProtocolEra() === 'modern';
    let level;
    const s = {
        client,
        transport,
        logs: [],
        updates: [],
        toolsChanged: 0,
        agreed: () => ({ agreed: client.getNegotiatedProtocolVersion(), era: client.getProtocolEra() }),
        call(name, args, options) {
            const _meta = level ? { [LOG_LEVEL_META_KEY]: level } : undefined;
            return client.callTool({ name, arguments: args, _meta }, options);
        },
        async logFrom(wanted) {
            if (modern()) level = wanted;
            else await client.setLoggingLevel(wanted);
        },
        async subscribe(uri) {
            if (modern()) await client.listen({ resourceSubscriptions: [uri] });
            else await client.subscribeResource({ uri });
        },
        async watchTools() {
            if (modern()) await client.listen({ toolsListChanged: true });
        },
        // Called without a cursor it follows them all by itself.
        allTools: async () => (await client.listTools()).tools.map((tool) => tool.name),
    };
    client.setNotificationHandler('notifications/message', ({ params }) => {
        s.logs.push(params);
    });
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
        s.updates.push(params.uri);
    });
    client.setNotificationHandler('notifications/tools/list_changed', () => {
        s.toolsChanged += 1;
    });
    await client.connect(transport);
    return s;
}

await main(open);
