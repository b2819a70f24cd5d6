//! Variables of the environment that a server asks for before it ends, and what to do about them.
//!
//! Knows how programs say that a variable is missing, and which of ours were not passed on. Must not know how a
//! server is started.

use taut::{Command, Error, error::ConnectReason};

use crate::typed;

/// More names say no more.
const NAMES: usize = 4;

/// How a program writes that it reads a variable; the name follows, perhaps in quotes.
const READS: [&str; 12] = [
    "KeyError: ",
    "os.environ[",
    "os.environ.get(",
    "os.getenv(",
    "getenv(",
    "process.env.",
    "process.env[",
    "Deno.env.get(",
    "Bun.env.",
    "ENV[",
    "ENV.fetch(",
    "env::var(",
];

/// Words of a line that says of a variable that it is missing.
const MISSES: [&str; 11] = [
    "not set",
    "unset",
    "is missing",
    "missing ",
    "required",
    "must be set",
    "please set",
    "not defined",
    "undefined",
    "environment variable",
    "env var",
];

/// What Node, npm, Python and uv write of a certificate that they do not trust.
const DISTRUST: [&str; 8] = [
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "UNABLE_TO_GET_ISSUER_CERT",
    "SELF_SIGNED_CERT",
    "unable to verify the first certificate",
    "unable to get local issuer certificate",
    "self-signed certificate",
    "invalid peer certificate",
    "CERTIFICATE_VERIFY_FAILED",
];

/// What to do about that.
const TRUST: &str = "it does not trust a certificate: behind a proxy that opens TLS, name the file of its authority: \
                     --env NODE_EXTRA_CA_CERTS=FILE (node, npx) or --env SSL_CERT_FILE=FILE (python, uvx); in a host's \
                     file under \"env\"";

fn distrusts(text: &str) -> bool {
    DISTRUST.iter().any(|words| text.contains(words))
}

/// The variables that a text asks for, in their order.
fn asked_for(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for line in text.lines() {
        let read = READS.iter().filter_map(|read| line.split_once(read));
        let read = read.filter_map(|(_, rest)| first_word(rest));
        let low = line.to_ascii_lowercase();
        let missed = MISSES.iter().any(|words| low.contains(words)).then(|| words(line));
        for name in read.chain(missed.into_iter().flatten()).filter(|word| is_name(word)) {
            if names.len() < NAMES && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

fn first_word(text: &str) -> Option<&str> {
    words(text.trim_start_matches(['\'', '"'])).next()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

/// Whether a word looks like the name of a variable: `API_KEY`, and no word of a sentence.
fn is_name(word: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    word.len() > 2 && word.len() < 100 && word.bytes().all(known) && word.contains('_')
}

/// The options that were typed, without the server's own words.
fn typed() -> Vec<String> {
    let ours = std::env::args_os().take_while(|word| word != "--");
    ours.map(|word| word.to_string_lossy().into_owned()).collect()
}

/// What to do about the variables that a server which does not start speaks of, or about those that it may need to
/// reach the network.
pub(crate) fn hint(error: &Error) -> Option<String> {
    let Error::Connect(failed) = error else { return None };
    if [&failed.stderr, &failed.stdout].into_iter().any(|text| distrusts(text)) {
        return Some(TRUST.to_owned());
    }
    let ours = typed();
    let given = |name: &str| ours.iter().any(|word| word.contains(&format!("{name}=")));
    if ours.iter().any(|word| word == "--inherit-env") {
        return missing(&asked_for(&failed.stderr), &given).or_else(|| of_runner(&failed.reason));
    }
    let texts = [&failed.stderr, &failed.stdout];
    let said = texts.into_iter().flat_map(|text| words(text));
    let withheld = said
        .into_iter()
        .find(|word| is_name(word) && !given(word) && std::env::var_os(word).is_some());
    if let Some(name) = withheld {
        return Some(format!(
            "{name} is set here, but a server gets only a few variables unless you say so: \
             --env {name}=\"${name}\", or --inherit-env"
        ));
    }
    let texts = texts.into_iter().flat_map(|text| asked_for(text));
    missing(&texts.collect::<Vec<_>>(), &given)
        .or_else(|| of_network(&failed.reason, &given))
        .or_else(|| of_runner(&failed.reason))
}

/// What to do about variables that are set nowhere.
fn missing(names: &[&str], given: &dyn Fn(&str) -> bool) -> Option<String> {
    let names: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| !given(name) && std::env::var_os(name).is_none())
        .collect();
    let option = |name: &&str| ["--env".to_owned(), format!("{name}=VALUE")];
    let options: Vec<String> = names.iter().flat_map(option).collect();
    let is = if names.len() == 1 { "is" } else { "are" };
    (!names.is_empty()).then(|| {
        format!(
            "it asks for {}, which {is} not set (in a host's file: under \"env\"): {}",
            names.join(", "),
            typed::with_options(&options)
        )
    })
}

/// What to do about an address of a proxy or a registry that was kept back because it may have a password in it.
fn of_network(reason: &ConnectReason, given: &dyn Fn(&str) -> bool) -> Option<String> {
    let may_wait = matches!(
        reason,
        ConnectReason::Silent { .. } | ConnectReason::Exited(_) | ConnectReason::NotJson { .. }
    );
    let kept_back = kept_back().into_iter().find(|name| !given(name)).filter(|_| may_wait)?;
    Some(format!(
        "{kept_back} is set here and was not passed on, because its value may have a password in it; if the server needs \
         it to reach the network: --env {kept_back}=\"${kept_back}\", or --inherit-env"
    ))
}

/// What to do about a runner of packages that says nothing: it downloads, or tries again and again behind a certificate
/// that it does not trust, for minutes and without a word.
fn of_runner(reason: &ConnectReason) -> Option<String> {
    let ConnectReason::Silent { package_runner: Some(runner), .. } = reason else { return None };
    Some(format!(
        "install the package first, or give it longer with --start-timeout; behind a proxy that opens TLS, {runner} waits \
         until NODE_EXTRA_CA_CERTS (npx) or SSL_CERT_FILE (uvx) names the file of its authority: --env NAME=FILE"
    ))
}

/// The variables about proxies and registries that are set here, and that no server gets unless it is told to.
fn kept_back() -> Vec<String> {
    let passed = Command::new("").network_env(true).network_variables();
    let kept = passed.into_iter().filter(|(_, passed)| !passed);
    kept.map(|(name, _)| name.to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::{asked_for, distrusts};

    #[test]
    fn a_certificate_that_is_not_trusted_is_known_by_the_words_of_npm_node_python_and_uv() {
        for text in [
            "npm error code UNABLE_TO_VERIFY_LEAF_SIGNATURE",
            "npm error request to https://registry failed, reason: unable to get local issuer certificate",
            "TypeError: fetch failed\n  [cause]: Error: self-signed certificate in certificate chain",
            "  code: 'DEPTH_ZERO_SELF_SIGNED_CERT'",
            "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed",
            "Caused by: invalid peer certificate: UnknownIssuer",
        ] {
            assert!(distrusts(text), "{text}");
        }
        assert!(!distrusts("set CERTIFICATE to the certificate of the server"));
    }

    #[test]
    fn the_variables_that_a_server_asks_for_are_found_however_it_says_so() {
        let table: [(&str, &[&str]); 10] = [
            ("KeyError: 'WEATHER_API_KEY'", &["WEATHER_API_KEY"]),
            ("    key = os.environ[\"WEATHER_API_KEY\"]", &["WEATHER_API_KEY"]),
            ("throw new Error(process.env.MY_TOKEN)", &["MY_TOKEN"]),
            ("Error: BRAVE_API_KEY environment variable is required", &["BRAVE_API_KEY"]),
            ("Please set DB_URL and DB_USER.", &["DB_URL", "DB_USER"]),
            ("HTTP_PROXY is used", &[]),
            ("KeyError: 'city'", &[]),
            ("a required FIELD", &[]),
            ("missing", &[]),
            ("const key = env::var(\"A_B\")\nKeyError: 'A_B'", &["A_B"]),
        ];
        for (text, names) in table {
            assert_eq!(asked_for(text), names, "{text}");
        }
    }
}
