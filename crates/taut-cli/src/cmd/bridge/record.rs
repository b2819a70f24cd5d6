//! `taut bridge --record` and `--page`: what passes on every connection of a bridge, kept and shown as
//! `taut trace` does.
//!
//! Knows which connection is a client's and which a server's. The library tells of each message after it was
//! read and before it is sent; the recorder takes a copy and never makes a connection wait.

use std::ffi::OsString;
use std::path::Path;

use taut::proxy::ProxyEvent;
use taut_trace::{End, Framing, Links, Recorder, Session, Side};

use crate::cmd::trace::{hide, keep};
use crate::debug::{self, Told};
use crate::hosts::Target;
use crate::output::{DIM, Output};
use crate::problem::Problem;

/// A recording of a bridge, from its start to its end.
pub(super) struct Recording {
    recorder: Recorder,
    pub(super) links: Links,
}

impl Recording {
    /// Starts to record if that is wanted.
    pub(super) fn start(
        output: &Output,
        (record, page): (Option<&Path>, bool),
        target: &Target,
        typed: &[OsString],
    ) -> Result<Option<Self>, Problem> {
        let kept = keep::keep(record, page, "bridge")?;
        for words in &kept.told {
            output.note(&output.err.paint(DIM, format!("taut bridge: {words}")));
        }
        let Some(file) = kept.file else { return Ok(None) };
        let session = Session {
            name: target.options.named.clone(),
            command: vec!["taut".to_owned(), "bridge".to_owned(), target.shown.clone()],
            recorder: concat!("taut ", env!("CARGO_PKG_VERSION")).to_owned(),
            limit: kept.limit,
        };
        let masker = hide::masker(typed, &target.options.env, &[]);
        let recorder = Recorder::start(Some(file), session, masker, None)
            .map_err(|error| Problem::File { what: "starting the recorder".to_owned(), error })?;
        let links = recorder.links();
        let own = links.clone();
        debug::on_message(move |told| take(&own, told));
        Ok(Some(Self { recorder, links }))
    }

    /// Writes what is left.
    pub(super) fn finish(self) {
        self.recorder.ended(End::Code(0));
        self.recorder.finish();
    }
}

/// Hands a message to the recorder.
fn take(links: &Links, told: &Told) {
    let Some(json) = &told.json else { return };
    // On a connection to a client, what we send comes from the server, as the client sees it.
    let (kind, from) = match (told.serving, told.sent) {
        (true, true) => ("client", Side::Server),
        (true, false) => ("client", Side::Client),
        (false, true) => ("server", Side::Client),
        (false, false) => ("server", Side::Server),
    };
    let framing = if told.headers { Framing::Headers } else { Framing::Lines };
    let link = format!("{kind} {}", told.link);
    links.message(link, from, framing, json.as_bytes());
}

/// What happens to the servers, beside messages.
pub(super) fn happened(links: &Links, event: &ProxyEvent) {
    match event {
        ProxyEvent::Opened { pid: Some(pid), .. } => links.started(*pid),
        ProxyEvent::Lost { .. } => links.lost(),
        _ => {}
    }
}
