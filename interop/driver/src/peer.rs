//! What stands in a peer's folder: how it is installed, started, and what it is known not to do.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::feature::Feature;

/// `peer.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    #[serde(skip)]
    pub name: String,
    #[serde(skip)]
    pub folder: PathBuf,
    /// For people.
    pub title: String,
    /// What it is called where it comes from.
    pub package: String,
    pub version: String,
    /// Files beside `peer.toml` whose change means that it must be installed anew.
    #[serde(default)]
    pub stamp: Vec<String>,
    /// Run once, each up to three times.
    #[serde(default)]
    pub install: Vec<String>,
    /// Run every time.
    #[serde(default)]
    pub build: Vec<String>,
    pub server: Option<Side>,
    pub client: Option<Side>,
    /// Servers that offer what they like: list, and one call each.
    #[serde(default)]
    pub real: Vec<Real>,
    /// Other peers' clients and servers, with `taut bridge` between them.
    #[serde(default)]
    pub bridged: Vec<Bridged>,
    #[serde(skip)]
    pub footnotes: Vec<Footnote>,
}

/// One of a peer's two ends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    pub command: Vec<String>,
    /// How it is opened, and which revision must come of it.
    pub modes: toml::Table,
}

/// A server that none of us wrote.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Real {
    pub name: String,
    pub version: String,
    pub command: Vec<String>,
    pub agrees: String,
    pub tool: String,
    #[serde(default)]
    pub arguments: toml::Table,
    /// What must stand in the answer.
    pub expect: String,
}

/// A client and a server of other peers, with `taut bridge` between them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bridged {
    /// The client's peer and its mode.
    pub client: String,
    pub mode: String,
    /// The server's peer.
    pub server: String,
    /// What is started instead of that peer's own command.
    pub command: Option<Vec<String>>,
    /// For `taut bridge`.
    #[serde(default)]
    pub options: Vec<String>,
    /// What the client must agree on with the bridge.
    pub agrees: String,
}

/// A limit of the peer's own, with a transcript that shows it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Footnote {
    pub direction: String,
    pub modes: Vec<String>,
    pub features: Vec<Feature>,
    pub text: String,
    /// A file in the peer's `evidence/`.
    pub evidence: String,
    /// Whether it sometimes works: then it is not stale when it does.
    #[serde(default)]
    pub flaky: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Footnotes {
    #[serde(default)]
    footnote: Vec<Footnote>,
}

impl Peer {
    /// Reads a peer's folder.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let mut peer: Self = toml_file(&folder.join("peer.toml"))?;
        peer.name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        peer.folder = folder.to_owned();
        let notes = folder.join("footnotes.toml");
        if notes.exists() {
            peer.footnotes = toml_file::<Footnotes>(&notes)?.footnote;
        }
        for note in &peer.footnotes {
            let evidence = folder.join("evidence").join(&note.evidence);
            let size = std::fs::metadata(&evidence).map_or(0, |file| file.len());
            if size == 0 {
                return Err(format!("{}: no evidence in {}", notes.display(), evidence.display()));
            }
        }
        Ok(peer)
    }

    /// What is known not to work there, with its number.
    pub fn footnote(
        &self,
        direction: &str,
        mode: &str,
        feature: Feature,
    ) -> Option<(usize, &Footnote)> {
        self.footnotes.iter().enumerate().find(|(_, note)| {
            (note.direction == "both" || note.direction == direction)
                && note.modes.iter().any(|name| name == "*" || name == mode)
                && note.features.contains(&feature)
        })
    }
}

impl Bridged {
    /// What the row is called.
    pub fn name(&self) -> String {
        let options = self.options.iter().map(|word| format!(" {word}")).collect::<String>();
        format!("{} {} to {}{options}", self.client, self.mode, self.server)
    }
}

impl Side {
    /// The modes with the revision that each must agree on.
    pub fn modes(&self) -> Vec<(String, String)> {
        let text = |value: &toml::Value| value.as_str().unwrap_or_default().to_owned();
        self.modes.iter().map(|(mode, revision)| (mode.clone(), text(revision))).collect()
    }
}

fn toml_file<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}
