// Calls one tool that fails, with the TypeScript SDK: `node words.mjs MODE COMMAND…`, where MODE is `legacy` or
// `modern` (pinned to 2026-07-28). Prints what the tool says, or the error that came in its place, as JSON.

import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [mode, command, ...args] = process.argv.slice(2);
const versionNegotiation = mode === 'modern' ? { mode: { pin: '2026-07-28' } } : undefined;
const client = new Client({ name: 'words', version: '1.0.0' }, { capabilities: {}, versionNegotiation });
await client.connect(new StdioClientTransport({ command, args }));
const tools = (await client.listTools()).tools.map((tool) => tool.name);
let said;
try {
    const call = { name: 'browser_navigate', arguments: { url: 'about:blank' } };
    const { isError, content } = await client.callTool(call);
    said = { isError, text: content.map((block) => block.text).join('\n') };
} catch (error) {
    said = { error: String(error), code: error.code };
}
console.log(JSON.stringify({ agreed: client.getNegotiatedProtocolVersion(), tools, ...said }));
await client.close();
