//! A page that a server asks to visit: its address is shown whole, and opened only on request (ELI-09).
//!
//! Knows which parts of an address can mislead a reader. Never loads the page itself.

use taut::client::RequestContext;
use taut::types::{ElicitAction, ElicitResult, ElicitUrl};

use super::Host;
use super::dialogue::prompt;
use crate::browser;
use crate::desk::{Line, Typed};
use crate::gate::escape;
use crate::output::{BOLD, DIM, YELLOW};

/// Shows the page and asks what to do with it.
pub(super) async fn visit(host: &Host, asking: &RequestContext, asked: &ElicitUrl) -> ElicitResult {
    host.heading(asking, "asks you to visit a page", &asked.message);
    let err = host.0.output.err;
    let place = Place::of(&asked.url);
    host.note(&format!("  {}", escape::line(&asked.url)));
    match &place.host {
        Some(name) => host.note(&format!("  on {}", err.paint(BOLD, escape::line(name)))),
        None => host.note(&err.paint(YELLOW, "  which names no host")),
    }
    for warning in &place.warnings {
        host.note(&err.paint(YELLOW, format!("  {warning}")));
    }
    host.note(&err.paint(
        DIM,
        "  open: open it in the browser · self: you open it yourself · no: decline · Ctrl-D goes away",
    ));
    loop {
        let line = Line { prompt: prompt(host, "open it? [open/self/no]"), ..Line::default() };
        let typed = match host.desk().read(line).await {
            Typed::Line(typed) => typed,
            Typed::Interrupted => {
                crate::signals::interrupt().await;
                return ElicitResult::cancel();
            }
            Typed::End => return ElicitResult::cancel(),
        };
        match typed.trim().to_lowercase().as_str() {
            // ELI-09: only the whole word is consent, neither a habit of "yes" nor an empty line.
            "open" if place.may_be_opened => match browser::open(&asked.url) {
                Ok(()) => return ElicitResult::new(ElicitAction::Accept),
                Err(why) => host.note(&err.paint(YELLOW, format!("  {why}; open it yourself"))),
            },
            "open" => {
                host.note(&err.paint(YELLOW, "  only http and https pages are opened from here"));
            }
            "s" | "self" => return ElicitResult::new(ElicitAction::Accept),
            "n" | "no" | ":decline" => return ElicitResult::decline(),
            ":cancel" => return ElicitResult::cancel(),
            _ => host.note("  type open, self or no"),
        }
    }
}

/// Where an address leads, as far as can be said without going there.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    host: Option<String>,
    may_be_opened: bool,
    warnings: Vec<&'static str>,
}

impl Place {
    fn of(url: &str) -> Self {
        let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
        let scheme = scheme.to_lowercase();
        let mut warnings = Vec::new();
        // Browsers read a backslash as a slash, so a host ends there, too.
        let authority = rest.strip_prefix("//").map(|rest| {
            let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
            &rest[..end]
        });
        let (user, host) = match authority.map(|all| all.rsplit_once('@')) {
            Some(Some((user, host))) => (Some(user), Some(host)),
            Some(None) => (None, authority),
            None => (None, None),
        };
        if user.is_some() {
            warnings.push("what stands before the @ is a user name, not the host");
        }
        let host = host.filter(|host| !host.is_empty());
        let foreign = |part: &str| !part.is_ascii() || part.to_lowercase().starts_with("xn--");
        if host.is_some_and(|host| host.split('.').any(foreign)) {
            warnings.push("the host's name has letters that may look like others");
        }
        if scheme == "http" {
            warnings.push("http: others on the way can read and change it");
        }
        let strange = url.chars().any(|c| c.is_control() || c.is_whitespace());
        let web = matches!(scheme.as_str(), "http" | "https");
        let may_be_opened = web && host.is_some() && !strange;
        Self { host: host.map(str::to_owned), may_be_opened, warnings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eli_09_the_host_is_what_a_browser_would_go_to() {
        let table = [
            ("https://example.org/a?b#c", Some("example.org"), true, 0),
            ("HTTPS://example.org:8443", Some("example.org:8443"), true, 0),
            ("https://good.example@evil.example/x", Some("evil.example"), true, 1),
            ("https://evil.example\\@good.example/x", Some("evil.example"), true, 0),
            ("https://evil.example?@good.example", Some("evil.example"), true, 0),
            ("https://exаmple.org/", Some("exаmple.org"), true, 1),
            ("https://xn--exmple-4nf.org/", Some("xn--exmple-4nf.org"), true, 1),
            ("http://example.org", Some("example.org"), true, 1),
            ("https://a.example/ x", Some("a.example"), false, 0),
            ("file:///etc/passwd", None, false, 0),
            ("javascript:alert(1)", None, false, 0),
            ("https:", None, false, 0),
            ("-psn", None, false, 0),
            ("", None, false, 0),
        ];
        for (url, host, may_be_opened, warnings) in table {
            let place = Place::of(url);
            let seen = (place.host.as_deref(), place.may_be_opened, place.warnings.len());
            assert_eq!(seen, (host, may_be_opened, warnings), "{url}");
        }
    }
}
