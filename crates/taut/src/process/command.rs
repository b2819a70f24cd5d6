//! What to start: a program, its arguments, its directory and its environment, as plain data.
//!
//! Knows how the child's environment is put together. How a program is found is in `lookup.rs`,
//! how it is started in `start.rs`.
//!
//! Obeys the scars P20 (explicit environment modes), W3 (what Windows programs need) and W10.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use super::error::SpawnError;
use super::network::is_harmless;

/// A program to start, with its arguments, directory and environment.
///
/// Nothing passes through a shell: each argument reaches the program as it stands.
///
/// # Which program
///
/// A name without a separator is looked up in the `PATH` *of the child*. A relative path with a
/// separator (`./server`, `bin/server`) counts from [`Command::current_dir`] when one is set, else
/// from the directory of this process. So do relative entries in `PATH`; empty ones are left out.
///
/// # Which environment
///
/// By default the child sees only a short list of harmless variables, the one that the official
/// SDKs pass on: `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM` and `USER` on Unix. A server is other
/// people's code, and the parent's environment is full of keys. [`Command::network_env`] adds what programs need to
/// reach the network behind a proxy or a certificate of one's own. [`Command::inherit_env`] passes
/// everything on, [`Command::clear_env`] nothing; what [`Command::env`] sets comes on top of each.
///
/// ```
/// let command = taut::Command::new("npx")
///     .args(["-y", "some-server"])
///     .env("API_TOKEN", "s3cret");
/// assert!(!format!("{command:?}").contains("s3cret"));
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use]
pub struct Command {
    program: OsString,
    args: Vec<OsString>,
    current_dir: Option<PathBuf>,
    base: Base,
    network: bool,
    env: BTreeMap<OsString, OsString>,
}

/// What the child's environment starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Safe,
    Inherit,
    Clear,
}

impl Command {
    /// A command without arguments, with the short safe environment.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            current_dir: None,
            base: Base::Safe,
            network: false,
            env: BTreeMap::new(),
        }
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets the directory that the child starts in.
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(dir.into());
        self
    }

    /// Sets one variable, whatever the rest of the environment is.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Passes the whole environment of this process on to the child.
    pub const fn inherit_env(mut self) -> Self {
        self.base = Base::Inherit;
        self
    }

    /// Passes nothing of this process's environment on to the child.
    pub const fn clear_env(mut self) -> Self {
        self.base = Base::Clear;
        self
    }

    /// Whether variables about certificates, proxies and package registries are passed on beside the short list:
    /// `NODE_EXTRA_CA_CERTS`, `SSL_CERT_FILE`, `HTTPS_PROXY`, `npm_config_registry` and their like. An address that may
    /// have a password in it is not passed on; [`network_variables`](Self::network_variables) names it.
    ///
    /// ```
    /// let command = taut::Command::new("npx").args(["-y", "some-server"]).network_env(true);
    /// # drop(command);
    /// ```
    pub const fn network_env(mut self, passed: bool) -> Self {
        self.network = passed;
        self
    }

    /// The program as it was given.
    #[must_use]
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// The arguments as they were given.
    #[must_use]
    pub fn arguments(&self) -> &[OsString] {
        &self.args
    }

    /// The directory that the child starts in, if one was set.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.current_dir.as_deref()
    }

    /// The environment that the child would get if it were started now, secrets and all.
    #[must_use]
    pub fn effective_env(&self) -> BTreeMap<OsString, OsString> {
        self.env_on_top_of(std::env::vars_os())
    }

    /// The variables about certificates, proxies and package registries that this process has, by name, and whether the
    /// child gets each of them.
    #[must_use]
    pub fn network_variables(&self) -> BTreeMap<OsString, bool> {
        let given = self.effective_env();
        let ours = std::env::vars_os().map(|(name, _)| name).chain(self.env.keys().cloned());
        let network = ours.filter(|name| super::network::is_network(name));
        network.map(|name| (name.clone(), given.contains_key(&name))).collect()
    }

    /// The name of the package runner that this starts, such as `npx` or `uvx`: it may download a server first.
    ///
    /// Two of them that download the same at the same time may break each other's files, so start them one after the
    /// other. `None` for any other program.
    #[must_use]
    pub fn package_runner(&self) -> Option<&'static str> {
        let stem = |word: &OsStr| Path::new(word).file_stem()?.to_str().map(str::to_owned);
        let known = |word: &OsStr| {
            let name = stem(word)?;
            PACKAGE_RUNNERS.into_iter().find(|runner| *runner == name)
        };
        let program = stem(&self.program);
        if !matches!(program.as_deref(), Some("env" | "cmd")) {
            return known(&self.program);
        }
        // `env A=b npx …` and `cmd /c npx …` start the first word that is no option and no variable.
        let text = |word: &&OsString| word.to_string_lossy().into_owned();
        let is_before =
            |word: &&OsString| text(word).starts_with(['-', '/']) || text(word).contains('=');
        self.args.iter().find(|word| !is_before(word)).and_then(|word| known(word))
    }

    /// The file that would be started, for a program that starts it in another way than this library does.
    ///
    /// # Errors
    ///
    /// If there is no such program or directory. The error says where it was looked for.
    pub fn find_program(&self) -> Result<PathBuf, SpawnError> {
        super::lookup::find(self).map(|found| found.program)
    }

    fn env_on_top_of(
        &self,
        parent: impl Iterator<Item = (OsString, OsString)>,
    ) -> BTreeMap<OsString, OsString> {
        let mut env: BTreeMap<OsString, OsString> = match self.base {
            Base::Safe => parent
                .filter(|(name, value)| {
                    is_safe(name, value) || (self.network && is_harmless(name, value))
                })
                .collect(),
            Base::Inherit => parent.collect(),
            Base::Clear => BTreeMap::new(),
        };
        for (name, value) in &self.env {
            // Windows names are case-blind: setting `Path` must replace `PATH`, not stand beside it.
            if cfg!(windows) {
                env.retain(|other, _| !other.eq_ignore_ascii_case(name));
            }
            env.insert(name.clone(), value.clone());
        }
        env
    }
}

/// Values are hidden: environments are where secrets travel, and Debug output ends up in logs.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("current_dir", &self.current_dir)
            .field("base", &self.base)
            .field("network", &self.network)
            .field("env", &self.env.keys())
            .finish()
    }
}

/// Programs that may download a server before they start it.
const PACKAGE_RUNNERS: [&str; 9] =
    ["npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "uvx", "uv", "pipx"];

/// The variables that the official SDKs pass on (P20).
#[cfg(not(windows))]
const SAFE_ON_UNIX: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

/// The variables that the official SDKs pass on, and those without which programs fail to start or
/// to find their own parts (W3). Compared without regard to case.
#[cfg(any(windows, test))]
const SAFE_ON_WINDOWS: [&str; 16] = [
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

#[cfg(windows)]
fn is_listed(name: &OsStr) -> bool {
    SAFE_ON_WINDOWS.iter().any(|safe| name.eq_ignore_ascii_case(safe))
}

#[cfg(not(windows))]
fn is_listed(name: &OsStr) -> bool {
    SAFE_ON_UNIX.iter().any(|safe| name == *safe)
}

fn is_safe(name: &OsStr, value: &OsStr) -> bool {
    // P20: a value that starts with `()` is an exported shell function, code instead of data.
    is_listed(name) && !value.as_encoded_bytes().starts_with(b"()")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that is passed on, on each system.
    const HOME: &str = if cfg!(windows) { "USERPROFILE" } else { "HOME" };

    const PARENT: [(&str, &str); 5] = [
        (HOME, "/home/me"),
        ("PATH", "/bin"),
        ("SHELL", "() { evil; }"),
        ("TOKEN", "parent"),
        ("XDG_CONFIG_HOME", "/home/me/.config"),
    ];

    fn env_of(command: &Command) -> Vec<(String, String)> {
        let parent = PARENT.iter().map(|(k, v)| (OsString::from(k), OsString::from(v)));
        let text = |s: OsString| s.into_string().unwrap();
        command.env_on_top_of(parent).into_iter().map(|(k, v)| (text(k), text(v))).collect()
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut pairs: Vec<_> = list.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        pairs.sort();
        pairs
    }

    #[test]
    fn p27_package_runners_are_known_behind_env_and_cmd_too() {
        let table: [(&[&str], Option<&str>); 8] = [
            (&["npx", "-y", "x"], Some("npx")),
            (&["/usr/bin/uvx", "x"], Some("uvx")),
            (&["npx.cmd"], Some("npx")),
            (&["env", "-i", "A=b", "npx", "x"], Some("npx")),
            (&["cmd", "/c", "npx", "x"], Some("npx")),
            (&["env", "A=b", "node", "npx"], None),
            (&["node", "npx"], None),
            (&["env"], None),
        ];
        for (words, runner) in table {
            assert_eq!(
                Command::new(words[0]).args(&words[1..]).package_runner(),
                runner,
                "{words:?}"
            );
        }
    }

    #[test]
    fn p20_three_modes_and_what_the_caller_sets_comes_last() {
        let base = Command::new("x");
        assert_eq!(env_of(&base), pairs(&[(HOME, "/home/me"), ("PATH", "/bin")]));
        assert_eq!(env_of(&base.clone().inherit_env()), pairs(&PARENT));
        assert_eq!(env_of(&base.clone().clear_env()), pairs(&[]));
        let mine = base.env("TOKEN", "mine").env("PATH", "/opt/bin");
        assert_eq!(
            env_of(&mine),
            pairs(&[(HOME, "/home/me"), ("PATH", "/opt/bin"), ("TOKEN", "mine")])
        );
        let on_everything = env_of(&mine.clone().inherit_env());
        assert!(on_everything.contains(&("TOKEN".into(), "mine".into())));
        assert_eq!(on_everything.len(), PARENT.len());
        assert_eq!(env_of(&mine.clear_env()), pairs(&[("PATH", "/opt/bin"), ("TOKEN", "mine")]));
    }

    #[test]
    fn p20_what_the_network_needs_is_passed_on_when_it_is_asked_for() {
        let parent = || {
            let ours =
                [("SSL_CERT_FILE", "/c.pem"), ("https_proxy", "http://a:b@p"), ("NO_PROXY", "x")];
            ours.into_iter().map(|(k, v)| (OsString::from(k), OsString::from(v)))
        };
        let names = |command: Command| {
            let env = command.env_on_top_of(parent());
            env.into_keys().map(|name| name.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(names(Command::new("x")), [""; 0]);
        assert_eq!(names(Command::new("x").network_env(true)), ["NO_PROXY", "SSL_CERT_FILE"]);
        assert_eq!(names(Command::new("x").network_env(true).clear_env()), [""; 0]);
    }

    #[test]
    fn p20_a_shell_function_is_not_passed_on_unless_all_is() {
        let has_shell = |command: &Command| env_of(command).iter().any(|(k, _)| k == "SHELL");
        assert!(!has_shell(&Command::new("x")));
        assert!(has_shell(&Command::new("x").inherit_env()));
    }

    #[test]
    fn w3_the_safe_list_has_what_windows_programs_need() {
        for name in ["PATHEXT", "COMSPEC", "WINDIR", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMROOT"] {
            assert!(SAFE_ON_WINDOWS.contains(&name), "{name}");
        }
    }

    #[test]
    fn debug_shows_names_and_hides_values() {
        let text = format!("{:?}", Command::new("srv").arg("--fast").env("TOKEN", "s3cret"));
        assert!(text.contains("TOKEN") && text.contains("--fast"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
}
