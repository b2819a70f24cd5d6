//! Where tokens are kept: one file, for its owner only, replaced as a whole, safe for several processes.
//!
//! Knows files, modes and locks; must not know how tokens are got. Nothing of it blocks the runtime: the
//! file is read and written on threads for that.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::kept::FileForm;
pub(super) use super::kept::Kept;
use super::lock::{StoreLock, is_silent, try_lock};
use crate::client::Secret;

/// A file of tokens that is longer is broken.
const MAX_FILE: u64 = 16 << 20;

/// How long another process may have the lock: longer than a refresh may take, for which it has it. One that has it
/// longer hangs, and must not stop all others.
const LOCK: Duration = Duration::from_secs(12);

/// How long a process that has just got the lock may take for its first sign of life.
const FIRST_SIGN: Duration = Duration::from_millis(300);

/// How long it is left alone between two tries: shorter than anybody notices.
const BETWEEN: Duration = Duration::from_millis(20);

/// Keeps tokens, by server and by who gave them out.
#[derive(Clone, Debug)]
pub struct TokenStore {
    path: Arc<Path>,
    lock: Duration,
}

/// Why tokens cannot be read or kept.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: Arc<io::Error>,
    },
    /// Others can read the file, or it belongs to another user.
    NotPrivate {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: &'static str,
    },
    /// The file holds something else than tokens.
    Broken {
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::NotPrivate { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Broken { path } => {
                write!(f, "{} is broken; remove it and log in again", path.display())
            }
        }
    }
}

impl std::error::Error for StoreError {}

/// A login, as far as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginSummary {
    /// The address of the server.
    pub server: String,
    /// Who gave out the tokens.
    pub issuer: String,
    /// The scopes that they are for.
    pub scope: Option<String>,
    /// When the access token is over, in seconds since 1970, if that is known.
    pub expires_at: Option<u64>,
    /// Whether there is a token to get another with.
    pub refreshable: bool,
}

/// The state of the file, by which a change of another process is seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stamp(Option<SystemTime>, u64, u64);

/// What a write of a login does, as far as another process may have been there meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Changes {
    /// A user has logged in: it takes the place of what is there.
    Login,
    /// A refresh has given new tokens. They are not wanted where the login was forgotten meanwhile.
    Newer,
    /// Something was found out about tokens that may not be the newest any more.
    Only,
}

impl TokenStore {
    /// The store in this file. Its folder is made when something is kept.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into().into(), lock: LOCK }
    }

    /// Sets how long another process may hold the lock of the file. 12 s, and 2 s without a sign of life. After that
    /// the file is read and written without the lock: what another process has kept meanwhile still counts.
    #[must_use]
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock = timeout;
        self
    }

    /// The user's own store: `taut/logins.json` in `$XDG_STATE_HOME`, or in the folder that the system has
    /// for that; `None` if the user has no home.
    #[must_use]
    pub fn of_user() -> Option<Self> {
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let folder = if cfg!(windows) {
            set("LOCALAPPDATA")?
        } else {
            match set("XDG_STATE_HOME") {
                Some(folder) if folder.is_absolute() => folder,
                _ => set("HOME")?.join(".local/state"),
            }
        };
        Some(Self::at(folder.join("taut").join("logins.json")))
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All logins, without their tokens.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn list(&self) -> Result<Vec<LoginSummary>, StoreError> {
        let all = self.load().await?;
        Ok(all
            .into_iter()
            .filter_map(|kept| {
                let tokens = kept.tokens?;
                Some(LoginSummary {
                    server: kept.server,
                    issuer: kept.issuer,
                    refreshable: tokens.refresh.is_some(),
                    scope: tokens.scope,
                    expires_at: tokens.expires_at,
                })
            })
            .collect())
    }

    /// Forgets everything about the server at this address. Says whether there was anything. It is final, also for
    /// programs that run and have the tokens in their memory.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub async fn forget(&self, server: &str) -> Result<bool, StoreError> {
        let server = match crate::client::url::Url::parse(server) {
            Ok(url) => super::metadata::key(&url),
            Err(_) => server.to_owned(),
        };
        let _lock = self.lock().await?;
        let mut all = self.load().await?;
        let before = all.len();
        all.retain(|kept| kept.server != server);
        let any = all.len() < before;
        if any {
            self.save(all).await?;
        }
        Ok(any)
    }

    pub(super) async fn find(&self, server: &str) -> Result<Option<Kept>, StoreError> {
        // The newest is the last.
        Ok(self.load().await?.into_iter().rev().find(|kept| kept.server == server))
    }

    /// Keeps a login in place of another with the same server and issuer, if it is still wanted; says whether it
    /// was. `before` is the access token that the store had, as far as the caller knows. The caller holds the lock,
    /// unless another process does not give it back.
    pub(super) async fn keep(
        &self,
        login: Kept,
        changes: Changes,
        before: Option<&Secret>,
    ) -> Result<bool, StoreError> {
        let mut all = match self.load().await {
            Ok(all) => all,
            Err(StoreError::Broken { path }) => {
                // Its owner may want to see what it was.
                let aside = path.with_extension("json.broken");
                fs::rename(&path, aside).map_err(|error| self.io(error))?;
                Vec::new()
            }
            Err(error) => return Err(error),
        };
        let is_same = |kept: &Kept| (&kept.server, &kept.issuer) == (&login.server, &login.issuer);
        let there = all.iter().find(|kept| is_same(kept));
        let token = there.and_then(|kept| Some(&kept.tokens.as_ref()?.access));
        let wanted = match changes {
            Changes::Login => true,
            Changes::Newer => there.is_some() || before.is_none(),
            Changes::Only => there.is_some() && token == before,
        };
        if wanted {
            all.retain(|kept| !is_same(kept));
            all.push(login);
            self.save(all).await?;
        }
        Ok(wanted)
    }

    /// Whether tokens can be kept, as far as that can be told before there are any.
    pub(super) async fn check(&self) -> Result<(), StoreError> {
        let _lock = self.lock().await?;
        match self.load().await {
            // A broken file is put aside.
            Ok(_) | Err(StoreError::Broken { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The lock of the file; `None` if another process does not give it back in time.
    pub(super) async fn lock(&self) -> Result<Option<StoreLock>, StoreError> {
        let began = Instant::now();
        loop {
            let store = self.clone();
            let tried = self.blocking(move || {
                store.make_folder()?;
                let mut options = OpenOptions::new();
                options.read(true).write(true).create(true);
                private(&mut options);
                let path = store.path.with_extension("json.lock");
                Ok(try_lock(&options, &path)?.ok_or_else(|| is_silent(&path)))
            });
            let silent = match tried.await? {
                Ok(lock) => return Ok(Some(lock)),
                Err(silent) => silent,
            };
            let waited = began.elapsed();
            if waited >= self.lock || (silent && waited >= FIRST_SIGN) {
                let path = self.path.display();
                tracing::warn!(%path, "another process holds its lock; is one of them stopped?");
                return Ok(None);
            }
            tokio::time::sleep(BETWEEN).await;
        }
    }

    /// The state of the file; `None` if there is none.
    pub(super) async fn stamp(&self) -> Option<Stamp> {
        let path = self.path.clone();
        let about = self.blocking(move || fs::metadata(path)).await.ok()?;
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(&about);
        #[cfg(not(unix))]
        let number = 0;
        Some(Stamp(about.modified().ok(), about.len(), number))
    }

    /// All secrets that are kept, for programs that mask them in what they show. Blocks while the file is read.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn secrets(&self) -> Result<Vec<Secret>, StoreError> {
        let all = self.read()?.into_iter().flat_map(|kept| {
            let tokens = kept.tokens.map(|tokens| [Some(tokens.access), tokens.refresh]);
            tokens.into_iter().flatten().chain([kept.client.secret])
        });
        Ok(all.flatten().collect())
    }

    async fn load(&self) -> Result<Vec<Kept>, StoreError> {
        let store = self.clone();
        self.blocking(move || Ok(store.read())).await?
    }

    fn read(&self) -> Result<Vec<Kept>, StoreError> {
        let io = |error| self.io(error);
        let path = || self.path.to_path_buf();
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io(error)),
        };
        if let Some(why) = not_private(&file).map_err(io)? {
            return Err(StoreError::NotPrivate { path: path(), why });
        }
        let mut text = String::new();
        match (&mut file).take(MAX_FILE).read_to_string(&mut text) {
            // Not text: broken, and found to be so below.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => text.clear(),
            read => drop(read.map_err(io)?),
        }
        let form = serde_json::from_str::<FileForm>(&text);
        let form = form.map_err(|_| StoreError::Broken { path: path() })?;
        Ok(form.logins.into_iter().map(Into::into).collect())
    }

    async fn save(&self, all: Vec<Kept>) -> Result<(), StoreError> {
        let store = self.clone();
        self.blocking(move || {
            let text = serde_json::to_string_pretty(&FileForm::of(all))?;
            store.make_folder()?;
            // In the same folder, so that it can take the other's place at once.
            static WRITES: AtomicU32 = AtomicU32::new(0);
            let (process, write) = (std::process::id(), WRITES.fetch_add(1, Ordering::Relaxed));
            let new = store.path.with_extension(format!("json.{process}-{write}"));
            let _ = fs::remove_file(&new);
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            private(&mut options);
            let mut file = options.open(&new)?;
            let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
            let written = written.and_then(|()| fs::rename(&new, &store.path));
            written.inspect_err(|_| drop(fs::remove_file(&new)))
        })
        .await
    }

    fn make_folder(&self) -> io::Result<()> {
        let Some(folder) = self.path.parent() else { return Ok(()) };
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)
    }

    fn io(&self, error: io::Error) -> StoreError {
        StoreError::Io { path: self.path.to_path_buf(), error: Arc::new(error) }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(|error| self.io(error))
    }
}

fn private(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}

#[cfg(unix)]
fn not_private(file: &File) -> io::Result<Option<&'static str>> {
    use std::os::unix::fs::MetadataExt as _;
    let about = file.metadata()?;
    Ok(if about.uid() != rustix::process::geteuid().as_raw() {
        Some("it belongs to another user; remove it and log in again")
    } else if about.mode() & 0o077 != 0 {
        Some("others can read the tokens in it; run chmod 600 on it")
    } else {
        None
    })
}

#[cfg(not(unix))]
fn not_private(_: &File) -> io::Result<Option<&'static str>> {
    // The folder is the user's own.
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_at_a_time_has_the_lock() {
        let folder = std::env::temp_dir().join(format!("taut-lock-{}", std::process::id()));
        let store = TokenStore::at(folder.join("logins.json"));
        let counter = folder.join("counter");
        let count = || fs::read_to_string(&counter).map_or(0, |text| text.parse::<u32>().unwrap());
        let add = async || {
            let _lock = store.lock().await.unwrap();
            let before = count();
            // The others get their turn, and would count from the same number.
            tokio::task::yield_now().await;
            fs::write(&counter, (before + 1).to_string()).unwrap();
        };
        for _ in 0..5 {
            tokio::join!(add(), add(), add(), add());
        }
        assert_eq!(count(), 20);
        fs::remove_dir_all(&folder).unwrap();
    }
}
