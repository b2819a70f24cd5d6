//! Which variables of the environment tell programs how to reach the network: certificates, proxies, registries.
//!
//! Pure. Knows their names, and when the value of one may hold credentials. Must not know what else a child gets.
//! docs/decisions/0024-network-variables.md; scar P20.

use std::ffi::OsStr;

/// Files and switches of certificates.
const CERTIFICATES: [&str; 17] = [
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "DENO_CERT",
    "DENO_TLS_CA_STORE",
    "GIT_SSL_CAINFO",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_ENV_PROXY",
    "NODE_USE_SYSTEM_CA",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    "npm_config_cafile",
];

/// Addresses of proxies and of package registries, and what belongs to them. An address may have a password in it.
const ADDRESSES: [&str; 19] = [
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_PROXY",
    "PIP_TRUSTED_HOST",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_INDEX",
    "UV_INDEX_URL",
    "npm_config_http_proxy",
    "npm_config_https_proxy",
    "npm_config_noproxy",
    "npm_config_proxy",
    "npm_config_registry",
    "npm_config_strict_ssl",
];

/// Programs read the names of proxies and of npm's settings in either case.
fn is(name: &OsStr, known: &str) -> bool {
    match known.ends_with("_PROXY") || known.starts_with("npm_config_") {
        true => name.eq_ignore_ascii_case(known),
        false if cfg!(windows) => name.eq_ignore_ascii_case(known),
        false => name == known,
    }
}

/// Whether a variable is about the network.
pub(super) fn is_network(name: &OsStr) -> bool {
    CERTIFICATES.iter().chain(&ADDRESSES).any(|known| is(name, known))
}

/// Whether a variable about the network can be given to a server without a credential in it.
pub(super) fn is_harmless(name: &OsStr, value: &OsStr) -> bool {
    if CERTIFICATES.iter().any(|known| is(name, known)) {
        return true;
    }
    // `http://user:password@proxy`, `user@proxy`, `https://index/simple?token=…`. In doubt it is kept back.
    let value = value.as_encoded_bytes();
    ADDRESSES.iter().any(|known| is(name, known))
        && !value.iter().any(|byte| matches!(byte, b'@' | b'?' | b'#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p20_an_address_with_a_password_is_kept_back_and_a_certificate_is_not() {
        let table = [
            ("NODE_EXTRA_CA_CERTS", "/etc/ssl/me@work.pem", true, true),
            ("HTTPS_PROXY", "http://proxy:3128", true, true),
            ("https_proxy", "proxy:3128", true, true),
            ("https_proxy", "http://me:secret@proxy:3128", true, false),
            ("ALL_PROXY", "me:secret@proxy:3128", true, false),
            ("NPM_CONFIG_REGISTRY", "https://registry.example/", true, true),
            ("npm_config_//registry.example/:_authToken", "s3cret", false, false),
            ("npm_config__auth", "s3cret", false, false),
            ("UV_INDEX_URL", "https://index.example/simple?token=s3cret", true, false),
            ("HTTPS_PROXY_PASSWORD", "s3cret", false, false),
        ];
        for (name, value, network, harmless) in table {
            let (name, value) = (OsStr::new(name), OsStr::new(value));
            assert_eq!(
                (is_network(name), is_harmless(name, value)),
                (network, harmless),
                "{name:?}"
            );
        }
    }
}
