"""An MCP server behind the Python SDK's own authorization server, which runs in the same process.

    sdk_python.py PORT METHODS...

Prints its address. METHODS are the ways in which a client may show itself that its metadata names; none: those that
the SDK names. `POST /control` with `{"token": 503}` makes the token endpoint answer that (or hang, with `"hang"`), and
with `{"expire": true}` it takes back all access tokens; either answers with what was counted. What it knows is in its
memory: a server that is started again has forgotten all clients.
"""

import asyncio
import json
import secrets
import socket
import sys
import time

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthToken
from pydantic import AnyHttpUrl

METADATA = "/.well-known/oauth-authorization-server"


class Provider(OAuthAuthorizationServerProvider):
    """Says yes to every user. Refresh tokens are good for one use."""

    def __init__(self):
        self.clients, self.codes, self.access, self.refresh = {}, {}, {}, {}
        self.refreshed = 0

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = AuthorizationCode(
            code=secrets.token_urlsafe(),
            client_id=client.client_id,
            scopes=params.scopes or ["read"],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    def give(self, client_id, scopes, resource):
        access = AccessToken(
            token=secrets.token_urlsafe(),
            client_id=client_id,
            scopes=scopes,
            expires_at=int(time.time()) + 3600,
            resource=resource,
        )
        refresh = RefreshToken(
            token=secrets.token_urlsafe(), client_id=client_id, scopes=scopes, resource=resource
        )
        self.access[access.token], self.refresh[refresh.token] = access, refresh
        return OAuthToken(
            access_token=access.token,
            token_type="Bearer",
            expires_in=3600,
            scope=" ".join(scopes),
            refresh_token=refresh.token,
        )

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.give(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        del self.refresh[refresh_token.token]
        self.refreshed += 1
        return self.give(client.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        of = token.client_id
        self.access = {key: kept for key, kept in self.access.items() if kept.client_id != of}
        self.refresh = {key: kept for key, kept in self.refresh.items() if kept.client_id != of}


class Faults:
    """Stands before the SDK's application."""

    def __init__(self, app, provider, methods):
        self.app, self.provider, self.methods = app, provider, methods
        self.token, self.asked = None, []

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        if scope["path"] == "/control":
            return await self.control(receive, send)
        if scope["path"] == "/token":
            headers = dict(scope["headers"])
            self.asked.append("basic" if b"authorization" in headers else "form")
            if self.token == "hang":
                while self.token == "hang" and (await receive())["type"] != "http.disconnect":
                    pass
                return None
            if self.token is not None:
                return await self.answer(send, self.token, {"error": "temporarily_unavailable"})
        if scope["path"] == METADATA and self.methods:
            return await self.metadata(scope, receive, send)
        return await self.app(scope, receive, send)

    async def control(self, receive, send):
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        asked = json.loads(body)
        self.token = asked.get("token")
        if asked.get("expire"):
            self.provider.access.clear()
        counted = {
            "clients": len(self.provider.clients),
            "methods": [c.token_endpoint_auth_method for c in self.provider.clients.values()],
            "refreshed": self.provider.refreshed,
            "asked": self.asked,
        }
        await self.answer(send, 200, counted)

    async def answer(self, send, status, document):
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(document).encode()})

    async def metadata(self, scope, receive, send):
        """The SDK's own document, with other methods."""
        body = b""

        async def keep(message):
            nonlocal body
            body += message.get("body", b"")

        await self.app(scope, receive, keep)
        methods = {"token_endpoint_auth_methods_supported": self.methods}
        await self.answer(send, 200, json.loads(body) | methods)


def main():
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(sys.argv[1])))
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    provider = Provider()
    server = MCPServer(
        "behind the Python SDK's login",
        auth_server_provider=provider,
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(origin),
            resource_server_url=AnyHttpUrl(f"{origin}/mcp"),
            client_registration_options=ClientRegistrationOptions(
                enabled=True, valid_scopes=["read"], default_scopes=["read"]
            ),
            revocation_options=RevocationOptions(enabled=True),
            required_scopes=["read"],
        ),
    )

    @server.tool(name="behind-the-login")
    def behind_the_login() -> str:
        """Says that the login worked."""
        return "behind the login"

    app = Faults(server.streamable_http_app(), provider, sys.argv[2:])
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    listener.listen()
    print(f"{origin}/mcp", flush=True)
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


main()
