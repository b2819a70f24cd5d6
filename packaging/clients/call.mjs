// A host on the TypeScript SDK: starts the server of its arguments and calls one tool.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'try', version: '1' });
await client.connect(new StdioClientTransport({ command, args }));
const result = await client.callTool({ name: 'echo', arguments: { text: 'hello from TypeScript' } });
console.log(result.content[0].text);
await client.close();
