//! The tokens that all requests of a program share: read from the store, refreshed, and given up.
//!
//! Knows what another process may have done meanwhile, and which refusal costs a login; must not know how a user
//! logs in (`authorize`) nor how a file is written (`store`). AUC-09.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::OnceCell;

use super::client_id::{ClientId, TokenAsk};
use super::discovery::{Assume, Discovered, discover};
use super::metadata::refuse;
use super::options::LoginOptions;
use super::requests::{Requests, Said};
use super::store::{Changes, Kept, Stamp, StoreError};
use super::tokens::{self, Tokens};
use crate::client::url::Url;
use crate::client::{Challenge, HttpError, HttpOptions, Secret};

/// How long a request waits for another token while the one that is there may still be good.
const EARLY: Duration = Duration::from_secs(2);

/// How long a token is used as it is after it could not be refreshed before its end. As long as it may be used
/// then: see `MARGIN` of the tokens.
const NOT_AGAIN: Duration = Duration::from_secs(30);

/// How often the store is looked at for what other processes have done: a logout counts within that time.
const LOOK: Duration = Duration::from_secs(1);

/// What belongs to one login, shared by the requests of a program.
pub(super) struct SharedLogin {
    pub(super) server: Url,
    /// The server's name in the store.
    pub(super) name: String,
    /// How the server is reached.
    pub(super) http: HttpOptions,
    pub(super) requests: Requests,
    pub(super) options: LoginOptions,
    /// What takes long is done by one request at a time.
    pub(super) work: tokio::sync::Mutex<Work>,
    held: Mutex<Held>,
    loaded: OnceCell<()>,
}

/// What is there now. Looked at by every request, and never locked for long.
#[derive(Default)]
struct Held {
    kept: Option<Kept>,
    /// The access token that the store has, as far as this program knows. `None`: it has none for this server.
    in_store: Option<Secret>,
    /// The store's file as it was read last, and when it was looked at.
    stamp: Option<Stamp>,
    looked: Option<Instant>,
    /// Until then no token is refreshed before its end.
    not_before: Option<Instant>,
    /// The token that was shown to the caller's hook last.
    shown: Option<Secret>,
}

/// What one request after the other does.
#[derive(Default)]
pub(super) struct Work {
    pub(super) discovered: Option<Discovered>,
    /// What was asked for last.
    pub(super) asked: Option<String>,
    /// When the last login was, and who gave out its tokens.
    pub(super) logged_in: Option<(Instant, String)>,
    /// The sets of scopes that were asked for after a 403.
    pub(super) stepped: Vec<String>,
    /// Why the newest tokens are not in the store.
    pub(super) not_kept: Option<StoreError>,
    /// When a refresh failed, and why. It counts for all who were waiting for it.
    failed: Option<(Instant, HttpError)>,
    /// The refresh token that was refused for good. It is not tried again.
    refused: Option<Secret>,
}

pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

impl SharedLogin {
    pub(super) fn new(
        server: Url,
        name: String,
        http: HttpOptions,
        requests: Requests,
        options: LoginOptions,
    ) -> Self {
        let (work, held, loaded) = Default::default();
        Self { server, name, http, requests, options, work, held, loaded }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept now.
    pub(super) fn kept(&self) -> Option<Kept> {
        self.held().kept.clone()
    }

    pub(super) fn tokens(&self) -> Option<Tokens> {
        self.held().kept.as_ref()?.tokens.clone()
    }

    /// Whether there is a token, and another than `old`.
    pub(super) fn has_other(&self, old: Option<&Secret>) -> bool {
        self.tokens().is_some_and(|tokens| Some(&tokens.access) != old)
    }

    /// Sees to it that what other processes have done counts here: a logout, and a login.
    pub(super) async fn look(&self) {
        let mut first = false;
        let read = async {
            first = true;
            self.read_store().await;
        };
        self.loaded.get_or_init(|| read).await;
        let Some(store) = self.options.store.as_ref().filter(|_| !first) else { return };
        {
            let mut held = self.held();
            if held.looked.is_some_and(|at| at.elapsed() < LOOK) {
                return;
            }
            held.looked = Some(Instant::now());
        }
        let stamp = store.stamp().await;
        if stamp != self.held().stamp {
            self.read_store().await;
        }
    }

    /// Takes over what the store has. A store that cannot be read changes nothing, and says why in the log.
    pub(super) async fn read_store(&self) {
        let Some(store) = &self.options.store else { return };
        let stamp = store.stamp().await;
        match store.find(&self.name).await {
            Ok(found) => self.take(found, stamp),
            Err(error) => tracing::warn!(%error, "kept tokens cannot be used"),
        }
    }

    fn take(&self, found: Option<Kept>, stamp: Option<Stamp>) {
        let mut held = self.held();
        (held.stamp, held.looked) = (stamp, Some(Instant::now()));
        let token = found.as_ref().and_then(|kept| Some(kept.tokens.as_ref()?.access.clone()));
        if token.is_some() {
            // What is there already may be newer, if it could not be kept.
            if token != held.in_store {
                held.kept = found;
            }
        } else if held.in_store.is_some() || held.kept.is_none() {
            // It had one, and has none: another process has logged out, or was refused.
            held.kept = found;
        }
        held.in_store = token;
    }

    /// The token for the next request.
    pub(super) async fn current(self: &Arc<Self>) -> Option<Secret> {
        self.look().await;
        let tokens = self.tokens()?;
        let may = self.held().not_before.is_none_or(|until| Instant::now() >= until);
        if tokens.refresh.is_some() && tokens.is_over(now()) && may {
            // The server has the last word on the old one, so nobody waits long for another.
            let wait = if tokens.has_ended(now()) { self.options.renewal } else { EARLY };
            let renewed = tokio::time::timeout(wait, self.renew(Some(tokens.access), None)).await;
            if !matches!(renewed, Ok(Ok(_))) {
                tracing::debug!(?renewed, "the token could not be refreshed");
                self.held().not_before = Some(Instant::now() + NOT_AGAIN);
            }
        }
        let kept = self.kept()?;
        let token = kept.tokens.as_ref()?.access.clone();
        self.show(&kept, &token);
        Some(token)
    }

    /// Shows the secrets of a login to the caller's hook, once.
    fn show(&self, kept: &Kept, token: &Secret) {
        if self.held().shown.replace(token.clone()).as_ref() == Some(token) {
            return;
        }
        let refresh = kept.tokens.as_ref().and_then(|tokens| tokens.refresh.as_ref());
        let all = [Some(token), refresh, kept.client.secret.as_ref()];
        all.into_iter().flatten().for_each(|secret| self.requests.hide(secret));
    }

    /// Gets another token than `old` without a user. Says whether there is one now. `refused` has the challenge
    /// of a refusal, if the server has refused `old`.
    pub(super) async fn renew(
        self: &Arc<Self>,
        old: Option<Secret>,
        refused: Option<Option<Challenge>>,
    ) -> Result<bool, HttpError> {
        let (login, began) = (self.clone(), Instant::now());
        // In a task of its own: refresh tokens are good for one use, and a request that is given up would take
        // the new one with it.
        let task = tokio::spawn(async move {
            let mut work = login.work.lock().await;
            if login.has_other(old.as_ref()) {
                return Ok(true);
            }
            if let Some((ended, error)) = work.failed.as_ref().filter(|(ended, _)| *ended >= began)
            {
                tracing::debug!(?ended, "another request has tried this meanwhile");
                return Err(error.clone());
            }
            let renewed = login.renew_now(&mut work, old.as_ref(), refused).await;
            if let Err(error) = &renewed {
                work.failed = Some((Instant::now(), error.clone()));
            }
            renewed
        });
        task.await.unwrap_or_else(|error| Err(refuse(format!("it was broken off: {error}"))))
    }

    async fn renew_now(
        &self,
        work: &mut Work,
        old: Option<&Secret>,
        refused: Option<Option<Challenge>>,
    ) -> Result<bool, HttpError> {
        let after = self.options.renewal;
        let late = |_| HttpError::TimedOut { what: "who gives out tokens", after };
        let discovered = match (&work.discovered, refused) {
            (Some(discovered), None) => discovered.clone(),
            (_, refused) => {
                let challenge = refused.flatten();
                let found = discover(&self.requests, &self.server, challenge.as_ref(), Assume::Yes);
                let found = tokio::time::timeout(after, found).await.map_err(late)??;
                work.discovered.clone_from(&found);
                let Some(found) = found else { return Ok(false) };
                found
            }
        };
        let lock = self.lock_store(work).await;
        // What another process has got meanwhile.
        self.read_store().await;
        if self.has_other(old) {
            return Ok(true);
        }
        // AUC-09: what another authorization server gave out is of no use here.
        let kept = self.kept().filter(|kept| kept.issuer == discovered.metadata.issuer);
        let Some(kept) = kept else { return Ok(false) };
        let refresh = kept.tokens.as_ref().and_then(|tokens| tokens.refresh.clone());
        let Some(refresh) = refresh.filter(|refresh| work.refused.as_ref() != Some(refresh)) else {
            return Ok(false);
        };
        let asked = self.refresh(work, &discovered, kept, refresh);
        match &lock {
            Some(lock) => lock.during(asked).await,
            None => asked.await,
        }
    }

    /// Asks for new tokens for a refresh token. The lock of the store is held.
    async fn refresh(
        &self,
        work: &mut Work,
        discovered: &Discovered,
        mut kept: Kept,
        refresh: Secret,
    ) -> Result<bool, HttpError> {
        let ask = TokenAsk {
            pairs: &[
                ("grant_type", "refresh_token"),
                ("refresh_token", refresh.reveal()),
                ("resource", &discovered.resource),
            ],
            within: self.options.renewal,
        };
        let said = kept.client.ask(&self.requests, &discovered.metadata, &ask).await?;
        let scope = kept.tokens.as_ref().and_then(|tokens| tokens.scope.clone());
        match said {
            Said::Yes(body) => {
                let mut tokens = tokens::read(&body, scope.as_deref(), now())?;
                tokens.refresh = tokens.refresh.or(Some(refresh));
                kept.tokens = Some(tokens);
                Ok(self.keep(work, kept, Changes::Newer).await)
            }
            Said::No(error) => {
                tracing::debug!(error = error.words(&[&refresh]), "the refresh token was refused");
                if error.is_final() {
                    // It will not get better. The registration is still good.
                    kept.tokens = None;
                } else if error.forgets_the_client() {
                    kept.client.doubted |= kept.client.port.is_some();
                } else {
                    // What it says of itself now need not be so at the next request.
                    return Ok(false);
                }
                work.refused = Some(refresh);
                self.keep(work, kept, Changes::Only).await;
                Ok(false)
            }
        }
    }

    /// Marks a registration as one that may be forgotten, until a login with it has worked: the page of an
    /// authorization server that does not know it sends nobody back.
    pub(super) async fn doubt(&self, work: &mut Work, client: &ClientId) {
        let Some(mut kept) = self.kept().filter(|kept| kept.client == *client) else { return };
        kept.client.doubted = true;
        let _lock = self.lock_store(work).await;
        self.keep(work, kept, Changes::Only).await;
    }

    /// Whether the store may be written: with its lock, or without it where another process does not give it
    /// back.
    pub(super) async fn lock_store(&self, work: &mut Work) -> Option<super::lock::StoreLock> {
        match self.options.store.as_ref()?.lock().await {
            Ok(lock) => lock,
            Err(error) => {
                tracing::warn!(%error, "tokens cannot be kept");
                work.not_kept = Some(error);
                None
            }
        }
    }

    /// Keeps a login, here and in the store. Says whether it is still wanted: a logout in another process is
    /// final.
    pub(super) async fn keep(&self, work: &mut Work, kept: Kept, changes: Changes) -> bool {
        let token = kept.tokens.as_ref().map(|tokens| tokens.access.clone());
        let before = {
            let mut held = self.held();
            held.kept = Some(kept.clone());
            held.in_store.clone()
        };
        let Some(store) = &self.options.store else { return true };
        match store.keep(kept, changes, before.as_ref()).await {
            Ok(true) => {
                self.held().in_store = token;
                true
            }
            Ok(false) => {
                self.read_store().await;
                self.tokens().is_some()
            }
            Err(error) => {
                tracing::warn!(%error, "the tokens are used, but could not be kept");
                work.not_kept = Some(error);
                true
            }
        }
    }
}
