//! `taut login`, `taut logout`, `taut logins`: tokens for servers at a URL that ask who one is.
//!
//! Knows how a person is asked to log in; the library knows the protocol (`taut_http::client::login`) and keeps
//! the tokens. No token is ever shown.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use taut_http::client::login::{AskUser, Login, LoginOptions, LoginRequest, TokenStore};
use taut_http::client::{AuthorizeFuture, HttpError, HttpOptions, Secret};

use crate::args;
use crate::files;
use crate::hosts::{self, How, Surroundings};
use crate::output::Output;
use crate::own;
use crate::problem::{Exit, Problem};
use crate::remote::{http_options, is_url};
use crate::{help, mask, secrets};

#[derive(clap::Args)]
#[command(after_help = help::LOGIN)]
pub(crate) struct LoginArgs {
    /// The server: a URL, or a name (see `taut servers`).
    server: String,
    /// Ask for these rights, separated by blanks; by default what the server asks for.
    #[arg(long, value_name = "SCOPES")]
    scope: Option<String>,
    /// Log in with this client id, which was registered before.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The secret of that client, from a file.
    #[arg(long, value_name = "FILE", requires = "client_id")]
    client_secret_file: Option<PathBuf>,
    /// Log in as a program, with the client's own id and secret: no browser.
    #[arg(long, requires = "client_secret_file")]
    machine: bool,
    /// How long to wait for the browser.
    #[arg(long, value_name = "TIME", value_parser = args::duration, default_value = "5m")]
    browser_timeout: Duration,
    /// Do not open a browser; only print the address.
    #[arg(long)]
    no_browser: bool,
    /// Send this header to the server; can be repeated.
    #[arg(long, value_name = "NAME: VALUE", value_parser = args::header)]
    header: Vec<(String, String)>,
    /// Trust the certificates in this file, and no others.
    #[arg(long, value_name = "FILE")]
    #[arg(value_parser = files::plain, value_hint = clap::ValueHint::FilePath)]
    ca_file: Option<PathBuf>,
    /// Read servers only from this file, of any host; can be repeated.
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct LogoutArgs {
    /// The server: a URL, or a name (see `taut servers`).
    server: String,
    /// Read servers only from this file, of any host; can be repeated.
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct LoginsArgs {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Adds the tokens that were kept for the server at `url`, if there is a place for them. Nobody is asked.
pub(crate) fn with_kept_tokens(url: &str, http: HttpOptions) -> HttpOptions {
    let Some(store) = TokenStore::of_user() else { return http };
    let advice = format!("{taut} login {}", mask::url(url), taut = own::name());
    let options = LoginOptions::new().store(store).advice(advice).on_secret(hide);
    let login = Login::new(url, &http, options);
    // An address that needs no login cannot be logged in to, and says so when it is used.
    match login {
        Ok(login) => http.authorize(Arc::new(login)),
        Err(_) => http,
    }
}

/// The secrets of all logins that are kept, with a name, for what stands between others: a server may repeat a token
/// that another `taut` has sent.
pub(crate) fn kept_secrets() -> impl Iterator<Item = (String, String)> {
    let kept = TokenStore::of_user().and_then(|store| store.secrets().ok()).unwrap_or_default();
    kept.into_iter().map(|secret| ("token".to_owned(), secret.reveal().to_owned()))
}

/// What taut sends of a login is a secret, as what a server is given is: in errors, in `--debug`, in captures.
fn hide(secret: &Secret) {
    secrets::hide("token", secret.reveal());
}

pub(crate) async fn run(output: &Output, args: &LoginArgs) -> Result<Exit, Problem> {
    let (url, headers) = address(&args.server, &args.config)?;
    let http = http_options(&headers, &args.header, args.ca_file.as_deref());
    let asked = Terminal { output: output.clone(), browser: !args.no_browser };
    let mut login =
        LoginOptions::new().store(store()?).timeout(args.browser_timeout).ask(Arc::new(asked));
    login = login.on_secret(hide);
    if let Some(scope) = &args.scope {
        login = login.scope(scope);
    }
    if let Some(id) = &args.client_id {
        let secret = args.client_secret_file.as_deref().map(secret).transpose()?;
        login = login.client(id, secret);
    }
    if args.machine {
        login = login.as_machine();
    }
    let login = Login::new(&url, &http, login).map_err(|error| failed(&url, &error))?;
    let what = match login.log_in().await {
        Ok(done) => {
            let scope = done.scope.map(|scope| format!(", for {scope}")).unwrap_or_default();
            format!("logged in to {}{scope}", mask::url(&done.server))
        }
        Err(HttpError::LoginNotNeeded { .. }) => {
            format!("no login is needed: {} serves everyone", mask::url(&url))
        }
        Err(error) => return Err(failed(&url, &error)),
    };
    output.print(&format!("{}\n", output.out.line(&what)))?;
    Ok(Exit::Worked)
}

pub(crate) async fn logout(output: &Output, args: &LogoutArgs) -> Result<Exit, Problem> {
    let (url, _) = address(&args.server, &args.config)?;
    // What another process writes meanwhile does not bring it back.
    let store = store()?.lock_timeout(Duration::from_secs(3));
    let forgotten = store.forget(&url).await.map_err(|error| kept(&error))?;
    let shown = mask::url(&url);
    let what = match forgotten {
        true => format!("the login to {shown} is forgotten; the server may still know it"),
        false => format!("there was no login to {shown}"),
    };
    output.print(&format!("{}\n", output.out.line(&what)))?;
    Ok(Exit::Worked)
}

pub(crate) async fn logins(output: &Output, args: &LoginsArgs) -> Result<Exit, Problem> {
    let all = store()?.list().await.map_err(|error| kept(&error))?;
    if args.json {
        let all: Vec<_> = all
            .iter()
            .map(|login| {
                json!({
                    "server": mask::url(&login.server), "issuer": login.issuer, "scope": login.scope,
                    "expires_at": login.expires_at, "refreshable": login.refreshable,
                })
            })
            .collect();
        output.json_line(&json!({ "logins": all }))?;
        return Ok(Exit::Worked);
    }
    if all.is_empty() {
        output.note(&own::named("no logins; taut login URL makes one"));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    for login in all {
        let state = match login.expires_at {
            _ if login.refreshable => "renewed when needed".to_owned(),
            Some(at) if at <= now => "over: log in again".to_owned(),
            Some(at) => format!("for {} more minutes", (at - now) / 60),
            None => "no end is known".to_owned(),
        };
        let line = format!("{}  by {}  {state}", mask::url(&login.server), login.issuer);
        output.print(&format!("{}\n", output.out.line(&line)))?;
    }
    Ok(Exit::Worked)
}

/// The URL that a word means, with the headers of a host's file.
fn address(word: &str, config: &[PathBuf]) -> Result<(String, Vec<(String, String)>), Problem> {
    if is_url(word) {
        return Ok((word.to_owned(), Vec::new()));
    }
    let found = hosts::find(Surroundings::here(), config);
    let server = found.named(word).ok_or_else(|| match hosts::unknown(&found, word) {
        Problem::Usage { what, .. } => Problem::Usage {
            what,
            next: Some("its address, such as https://example.com/mcp".to_owned()),
        },
        problem => problem,
    })?;
    let How::Remote { url, headers, .. } = &server.how else {
        return Err(Problem::Usage {
            what: format!("{word} is started with a command, which has no login here"),
            next: Some(own::named("a URL, or the name of a server at a URL: see taut servers")),
        });
    };
    server.remote(url, headers, &found.around).map_err(|missing| {
        let words: Vec<String> = missing.iter().map(ToString::to_string).collect();
        Problem::usage(format!("{word}: {}", words.join(", ")))
    })
}

/// The variables that say where tokens are kept.
const PLACES: &str = if cfg!(windows) { "LOCALAPPDATA" } else { "HOME or XDG_STATE_HOME" };

/// The one of them that is always set.
const HOME: &str = if cfg!(windows) { "LOCALAPPDATA" } else { "HOME" };

fn store() -> Result<TokenStore, Problem> {
    TokenStore::of_user().ok_or_else(|| Problem::Usage {
        what: format!("there is no place for tokens: {HOME} is not set"),
        next: Some(format!("{PLACES}, a folder of yours")),
    })
}

fn secret(path: &std::path::Path) -> Result<Secret, Problem> {
    let text = files::text(path, files::SETTINGS)?;
    Ok(Secret::new(text.trim_end()))
}

fn failed(url: &str, error: &HttpError) -> Problem {
    let exit = match error {
        HttpError::NobodyLoggedIn { .. } | HttpError::TimedOut { .. } => Exit::TimedOut,
        HttpError::Address { .. } | HttpError::Setting { .. } => Exit::Usage,
        HttpError::NotKept { .. } => Exit::Unwritten,
        HttpError::Unreachable { .. } | HttpError::Broken { .. } => Exit::NoConnection,
        _ => Exit::Refused,
    };
    let words = error.to_string();
    let (why, next) = match words.split_once("; ") {
        Some((why, next)) => (why, Some(next.to_owned())),
        None => (words.as_str(), None),
    };
    let next = next.or_else(|| match error {
        HttpError::Unreachable { .. } | HttpError::Broken { .. } => Some(format!(
            "is it running, and is the address right? `{taut} doctor {}`",
            mask::url(url),
            taut = own::name()
        )),
        _ => None,
    });
    Problem::Login { what: format!("no login to {}: {why}", mask::url(url)), next, exit }
}

/// Why the tokens that were kept cannot be used, if so.
pub(crate) async fn unusable() -> Option<String> {
    let error = TokenStore::of_user()?.list().await.err()?;
    Some(format!("the tokens that were kept cannot be used: {error}"))
}

fn kept(error: &taut_http::client::login::StoreError) -> Problem {
    Problem::Usage {
        what: error.to_string(),
        next: Some("mend or remove that file, then log in again".to_owned()),
    }
}

/// Asks the person in front of the terminal.
struct Terminal {
    output: Output,
    browser: bool,
}

impl AskUser for Terminal {
    fn ask<'a>(&'a self, request: LoginRequest<'a>) -> AuthorizeFuture<'a, String> {
        Box::pin(async move {
            let shown = self.output.err.line(request.address()).into_owned();
            self.output.note(&format!("open this address to log in:\n  {shown}"));
            if self.browser {
                open_browser(request.address());
            }
            self.output.note(
                "waiting for the browser; if it runs on another machine, paste the address that it ends at",
            );
            tokio::select! {
                redirected = request.redirected() => redirected,
                Some(pasted) = pasted() => Ok(pasted),
            }
        })
    }
}

/// The line that a person pastes; never, if nothing can be typed.
async fn pasted() -> Option<String> {
    let (typed, line) = tokio::sync::oneshot::channel();
    // A thread of its own: it cannot be stopped, and must not keep the runtime.
    std::thread::spawn(move || {
        let mut line = String::new();
        while matches!(std::io::stdin().read_line(&mut line), Ok(1..)) {
            if !line.trim().is_empty() {
                let _ = typed.send(line.trim().to_owned());
                return;
            }
            line.clear();
        }
        // Nobody types: the browser is waited for.
        loop {
            std::thread::park();
        }
    });
    line.await.ok()
}

/// Opens the address in a browser, if there seems to be one.
fn open_browser(address: &str) {
    let has = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if cfg!(any(target_os = "macos", windows)) || has("DISPLAY") || has("WAYLAND_DISPLAY") {
        // The address is shown as well, so one that is not opened is no error.
        let _ = crate::browser::open(address);
    }
}
