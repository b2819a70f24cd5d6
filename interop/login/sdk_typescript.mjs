// An MCP server behind the TypeScript SDK's own authorization server (mcpAuthRouter), in one process.
//
//   sdk_typescript.mjs PORT METHODS...
//
// As sdk_python.py: prints its address, takes `POST /control`, and forgets all clients when it ends. With the word
// `open` in place of the methods it serves everyone, and there is no authorization server.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { InvalidGrantError, InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import { mcpAuthRouter } from '@modelcontextprotocol/sdk/server/auth/router.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import express from 'express';

const [port, ...methods] = process.argv.slice(2);
const isOpen = methods[0] === 'open';
const soon = () => Math.floor(Date.now() / 1000) + 3600;

// Says yes to every user. Refresh tokens are good for one use.
class Provider {
  clients = new Map();
  codes = new Map();
  access = new Map();
  refresh = new Map();
  refreshed = 0;

  clientsStore = {
    getClient: async (id) => this.clients.get(id),
    registerClient: async (client) => {
      this.clients.set(client.client_id, client);
      return client;
    },
  };

  async authorize(client, params, response) {
    const code = randomUUID();
    this.codes.set(code, { ...params, client: client.client_id });
    const to = new URL(params.redirectUri);
    to.searchParams.set('code', code);
    if (params.state !== undefined) to.searchParams.set('state', params.state);
    response.redirect(to.href);
  }

  async challengeForAuthorizationCode(client, code) {
    const found = this.codes.get(code);
    if (found?.client !== client.client_id) throw new InvalidGrantError('there is no such code');
    return found.codeChallenge;
  }

  give(client, scopes, resource) {
    const [access, refresh] = [randomUUID(), randomUUID()];
    this.access.set(access, { token: access, clientId: client.client_id, scopes, resource, expiresAt: soon() });
    this.refresh.set(refresh, { client: client.client_id, scopes, resource });
    const scope = scopes.join(' ');
    return { access_token: access, token_type: 'Bearer', expires_in: 3600, scope, refresh_token: refresh };
  }

  async exchangeAuthorizationCode(client, code) {
    const { scopes, resource } = this.codes.get(code);
    this.codes.delete(code);
    return this.give(client, scopes ?? ['read'], resource);
  }

  async exchangeRefreshToken(client, token) {
    const found = this.refresh.get(token);
    if (found?.client !== client.client_id) throw new InvalidGrantError('there is no such refresh token');
    this.refresh.delete(token);
    this.refreshed += 1;
    return this.give(client, found.scopes, found.resource);
  }

  async verifyAccessToken(token) {
    const found = this.access.get(token);
    if (!found) throw new InvalidTokenError('there is no such token');
    return found;
  }

  async revokeToken(client) {
    for (const [token, { clientId }] of this.access) if (clientId === client.client_id) this.access.delete(token);
    for (const [token, kept] of this.refresh) if (kept.client === client.client_id) this.refresh.delete(token);
  }
}

const provider = new Provider();
const app = express();
const listener = createServer(app);
await new Promise((done) => listener.listen(Number(port), '127.0.0.1', done));
const origin = `http://127.0.0.1:${listener.address().port}`;
const url = `${origin}/mcp`;

let fault;
const asked = [];
app.post('/control', express.json(), (request, response) => {
  fault = request.body.token;
  if (request.body.expire) provider.access.clear();
  const clients = [...provider.clients.values()];
  const all = clients.map((client) => client.token_endpoint_auth_method);
  response.json({ clients: clients.length, methods: all, refreshed: provider.refreshed, asked });
});
app.post('/token', (request, response, next) => {
  asked.push(request.headers.authorization ? 'basic' : 'form');
  if (fault === 'hang') return;
  if (fault === undefined) return next();
  response.status(fault).json({ error: 'temporarily_unavailable' });
});
if (!isOpen) {
  app.get('/.well-known/oauth-authorization-server', (_, response, next) => {
    // The SDK's own document, with other methods.
    const say = response.json.bind(response);
    response.json = (document) =>
      say(methods.length ? { ...document, token_endpoint_auth_methods_supported: methods } : document);
    next();
  });
  const options = { rateLimit: false };
  app.use(
    mcpAuthRouter({
      provider,
      issuerUrl: new URL(origin),
      resourceServerUrl: new URL(url),
      scopesSupported: ['read'],
      authorizationOptions: options,
      clientRegistrationOptions: options,
      tokenOptions: options,
      revocationOptions: options,
    }),
  );
  const resourceMetadataUrl = `${origin}/.well-known/oauth-protected-resource/mcp`;
  app.use('/mcp', requireBearerAuth({ verifier: provider, requiredScopes: ['read'], resourceMetadataUrl }));
}
app.post('/mcp', express.json(), async (request, response) => {
  const server = new McpServer({ name: "behind the TypeScript SDK's login", version: '1' });
  server.registerTool('behind-the-login', { description: 'Says that the login worked.' }, () => ({
    content: [{ type: 'text', text: 'behind the login' }],
  }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on('close', () => server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});
app.all('/mcp', (_, response) => response.status(405).end());
console.log(url);
