"""Brokers with TLS and with credentials, as the command reaches them: certificates and JWTs are made here by openssl.

usage: secure.py TAUT NATS_SERVER
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import time

from fleet import Broker, Failed, Worker, says

TAUT, NATS = sys.argv[1], sys.argv[2]
SERVE = [TAUT, "serve"]


def openssl(*words, data=None):
    done = subprocess.run(["openssl", *words], input=data, capture_output=True)
    if done.returncode != 0:
        raise Failed(f"openssl {' '.join(words)}: {done.stderr.decode()}")
    return done.stdout


class Authority:
    """A certificate authority of our own."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.file, self.key = self.path("ca.pem"), self.path("ca.key")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", f"/CN={name}", "-keyout", self.key, "-out", self.file,
                "-addext", "basicConstraints=critical,CA:TRUE")

    def path(self, file):
        return os.path.join(self.folder, f"{self.name}-{file}")

    def issue(self, who, names):
        """A certificate and its key, as files."""
        certificate, key, request, extra = (self.path(f"{who}.{end}") for end in ("pem", "key", "csr", "ext"))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={who}",
                "-keyout", key, "-out", request)
        with open(extra, "w") as file:
            file.write(f"subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth\n")
        openssl("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self.key, "-CAcreateserial", "-days", "2",
                "-extfile", extra, "-out", certificate)
        return certificate, key


def works(url, *options):
    """A worker and a caller reach each other there."""
    worker = Worker(TAUT, url, SERVE, *options)
    try:
        worker.ready()
        says(TAUT, ["call", "add", "a=2", "b=3", "nats:test", "--nats", url, *options], 0, "5")
        worker.stop()
    finally:
        if worker.process.poll() is None:
            worker.kill()


def a_broker_with_tls_is_reached_and_a_wrong_authority_is_named():
    with tempfile.TemporaryDirectory() as folder:
        ours, others = Authority(folder, "ours"), Authority(folder, "others")
        certificate, key = ours.issue("broker", "IP:127.0.0.1,DNS:localhost")
        broker = Broker(NATS, "--tls", "--tlscert", certificate, "--tlskey", key)
        tls = broker.url.replace("nats://", "tls://")
        try:
            works(tls, "--tls-ca", ours.file)
            # The broker itself says that it wants TLS.
            works(broker.url, "--tls-ca", ours.file)
            for options in (["--tls-ca", others.file], []):
                says(TAUT, ["fleet", "--nats", tls, *options], 4, f"no secure connection to {tls}", "--tls-ca FILE")
            says(TAUT, ["fleet", "--nats", tls, "--tls-ca", "/no/such/file"], 4, "/no/such/file cannot be read")
        finally:
            broker.kill()
        # One that wants to see a certificate of its clients too.
        broker = Broker(NATS, "--tlsverify", "--tlscert", certificate, "--tlskey", key, "--tlscacert", ours.file)
        tls = broker.url.replace("nats://", "tls://")
        try:
            mine, my_key = ours.issue("client", "DNS:client")
            works(tls, "--tls-ca", ours.file, "--tls-cert", mine, "--tls-key", my_key)
            theirs, their_key = others.issue("client", "DNS:client")
            wrong = ["--tls-ca", ours.file, "--tls-cert", theirs, "--tls-key", their_key]
            for options in (wrong, ["--tls-ca", ours.file]):
                says(TAUT, ["fleet", "--nats", tls, *options], 4, tls, "--tls-cert FILE")
        finally:
            broker.kill()
        broker = Broker(NATS)
        try:
            tls = broker.url.replace("nats://", "tls://")
            says(TAUT, ["fleet", "--nats", tls, "--tls-ca", ours.file], 4, tls, "speaks TLS")
        finally:
            broker.kill()


# The first letter of each kind of key, as the base32 text shows it.
KINDS = {"O": 14 << 3, "A": 0, "U": 20 << 3}


def checked(data):
    """The text of a key: with a CRC-16 (XMODEM) behind it, in base32."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return base64.b32encode(data + crc.to_bytes(2, "little")).rstrip(b"=").decode()


class Key:
    """An nkey: a key for Ed25519, as NATS writes it."""

    def __init__(self, folder, kind):
        raw = os.urandom(32)
        self.file = os.path.join(folder, f"{raw[:8].hex()}.der")
        with open(self.file, "wb") as file:
            # PKCS #8 for Ed25519: this, and the seed.
            file.write(bytes.fromhex("302e020100300506032b657004220420") + raw)
        public = openssl("pkey", "-inform", "DER", "-in", self.file, "-pubout", "-outform", "DER")[-32:]
        self.public = checked(bytes([KINDS[kind]]) + public)
        seed = 18 << 3
        self.seed = checked(bytes([seed | KINDS[kind] >> 5, (KINDS[kind] & 31) << 3]) + raw)

    def sign(self, subject, name, claims):
        """A JWT about another key."""

        def text(value):
            return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

        head = {"typ": "JWT", "alg": "ed25519-nkey"}
        body = {"jti": name, "iat": int(time.time()), "iss": self.public, "name": name, "sub": subject.public}
        signed = f"{text(head)}.{text({**body, 'nats': {**claims, 'version': 2}})}"
        with tempfile.NamedTemporaryFile() as file:
            file.write(signed.encode())
            file.flush()
            signature = openssl("pkeyutl", "-sign", "-inkey", self.file, "-keyform", "DER", "-rawin", "-in", file.name)
        return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def credentials(folder, account, name, publish, subscribe):
    """A file of credentials for a user who may do this."""
    user = Key(folder, "U")
    claims = {"pub": {"allow": publish}, "sub": {"allow": subscribe}, "subs": -1, "data": -1, "payload": -1}
    token = account.sign(user, name, {**claims, "type": "user"})
    path = os.path.join(folder, f"{name}.creds")
    with open(path, "w") as file:
        file.write(f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
                   f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n")
    return path


def credentials_with_the_permissions_of_the_guide_are_enough():
    with tempfile.TemporaryDirectory() as folder:
        operator, account, stranger = Key(folder, "O"), Key(folder, "A"), Key(folder, "A")
        no_limits = {name: -1 for name in ("subs", "data", "payload", "imports", "exports", "conn", "leaf")}
        claims = {"limits": {**no_limits, "wildcards": True}, "default_permissions": {"pub": {}, "sub": {}}}
        config = os.path.join(folder, "broker.conf")
        with open(config, "w") as file:
            file.write(f"operator: {operator.sign(operator, 'operator', {'type': 'operator'})}\nresolver: MEMORY\n"
                       f"resolver_preload: {{ {account.public}: "
                       f"{operator.sign(account, 'account', {**claims, 'type': 'account'})} }}\n")
        # As docs/guides/fleet.md says.
        of_worker = credentials(folder, account, "worker", ["_INBOX.>", "mcp.test.worker.>"], ["mcp.test.>", "$SRV.>"])
        of_edge = credentials(folder, account, "edge", ["mcp.test.>", "$SRV.>"], ["_INBOX.>"])
        unknown = credentials(folder, stranger, "unknown", [">"], [">"])
        broker = Broker(NATS, "-c", config)
        worker = Worker(TAUT, broker.url, SERVE, "--creds", of_worker)
        try:
            worker.ready()
            here = ["--nats", broker.url, "--creds"]
            says(TAUT, ["call", "add", "a=2", "b=3", "nats:test", *here, of_edge], 0, "5")
            # With progress, which is acknowledged to the worker.
            says(TAUT, ["call", "slow", "steps=3", "step_ms=100", "nats:test", *here, of_edge], 0)
            says(TAUT, ["fleet", *here, of_edge], 0, worker.id)
            for options in ([*here, unknown], here[:2]):
                says(TAUT, ["fleet", *options], 4, "refuses these credentials", "--creds FILE")
            # An edge's are not enough for a worker, and it says what is missing.
            says(TAUT, ["worker", "test", *here, of_edge, "--", *SERVE], 4, "subscribe to mcp.test.> and $SRV.>")
            worker.stop()
        finally:
            if worker.process.poll() is None:
                worker.kill()
            broker.kill()


def main():
    for check in [
        a_broker_with_tls_is_reached_and_a_wrong_authority_is_named,
        credentials_with_the_permissions_of_the_guide_are_enough,
    ]:
        check()
        print(f"{check.__name__}: ok", flush=True)


main()
