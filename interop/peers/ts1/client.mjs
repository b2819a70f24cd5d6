// The TypeScript SDK 1.x as a client.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    ListRootsRequestSchema,
    LoggingMessageNotificationSchema,
    ResourceUpdatedNotificationSchema,
    ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

import { host, isUrl, main } from './features.mjs';

async function open(_mode, command, args) {
    const capabilities = { elicitation: {}, sampling: {}, roots: { listChanged: true } };
    const client = new Client({ name: 'interop-ts1', version: '1.0.0' }, { capabilities });
    const transport = isUrl(command)
        ? new StreamableHTTPClientTransport(new URL(command))
        : new StdioClientTransport({ command, args, maxBufferSize: 64 << 20 });
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => host.elicit(params));
    client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => host.sample(params));
    client.setRequestHandler(ListRootsRequestSchema, () => host.roots());
    let agreed;
    const setVersion = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (version) => {
        agreed = version;
        setVersion?.(version);
    };
    const s = {
        client,
        transport,
        logs: [],
        updates: [],
        toolsChanged: 0,
        agreed: () => ({ agreed, era: 'legacy' }),
        call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
        logFrom: (level) => client.setLoggingLevel(level),
        subscribe: (uri) => client.subscribeResource({ uri }),
        watchTools: async () => {},
        async allTools() {
            const names = [];
            let cursor;
            do {
                const page = await client.listTools({ cursor });
                names.push(...page.tools.map((tool) => tool.name));
                cursor = page.nextCursor;
            } while (cursor);
            return names;
        },
    };
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
        s.logs.push(params);
    });
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
        s.updates.push(params.uri);
    });
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
        s.toolsChanged += 1;
    });
    await client.connect(transport);
    return s;
}

await main(open);
