//! `taut read`: one resource.

use serde::Serialize;
use taut::types::{AtRevision, ResourceContents, WriteJson as _};
use taut::{Client, Error, Revision};

use crate::args::Read;
use crate::arguments::closest;
use crate::content::{self, Piece};
use crate::hosts::resolve;
use crate::output::Output;
use crate::own;
use crate::problem::{Exit, Problem};
use crate::session::with_server;
use crate::spinner::Spinner;
use crate::word_order::Order;

#[derive(Serialize)]
pub(crate) struct Document<'a> {
    contents: Vec<AtRevision<'a, ResourceContents>>,
}

pub(crate) async fn run(output: &Output, args: &Read) -> Result<Exit, Problem> {
    let started = resolve(output, &args.options, args.name.as_deref(), &args.server);
    let rest = args.name.as_slice();
    let order = Order { command: "read", first: &args.uri, is: "the address", rest };
    let started = started.map_err(|problem| order.mend(problem, &args.options))?.reach;
    let work = async |client: &Client, spinner: &Spinner| {
        spinner.say(format!("reading {}", args.uri));
        let contents = match client.read(args.uri.as_str()).await {
            Ok(contents) => contents,
            Err(error) => {
                let see = own::named(
                    "see what it has with `taut list resources` and `taut list templates`",
                );
                return Err(meant(client, &args.uri, error, &see).await);
            }
        };
        if output.json {
            return output.document(&document(&contents, client.revision()));
        }
        show(output, &contents)
    };
    let ((), exit) = with_server(output, &args.options, started, work).await?;
    Ok(exit)
}

/// What is said if a resource cannot be read: which one is meant, where another has nearly the same address, else
/// where to see them.
pub(crate) async fn meant(client: &Client, uri: &str, error: Error, see: &str) -> Problem {
    let refused = matches!(error, Error::Refused { .. });
    let problem = Problem::from(error);
    if !refused {
        return problem;
    }
    let resources = client.resources().await.unwrap_or_default();
    if resources.iter().any(|resource| resource.uri == uri) {
        return problem;
    }
    match closest(uri, resources.iter().map(|resource| resource.uri.as_str())) {
        Some(meant) => problem.hinted(format!("did you mean {meant}?")),
        None => problem.hinted(see.to_owned()),
    }
}

/// As the protocol has it.
pub(crate) fn document(contents: &[ResourceContents], revision: Revision) -> Document<'_> {
    Document { contents: contents.iter().map(|each| each.at(revision)).collect() }
}

fn show(output: &Output, contents: &[ResourceContents]) -> Result<(), Problem> {
    let pieces: Vec<Piece> = contents.iter().map(Piece::of_resource).collect();
    match pieces.as_slice() {
        // What somebody redirects is the resource itself, to the byte.
        [Piece::Bytes { bytes: Ok(bytes), .. }] if !output.on_terminal() => output.write(bytes),
        [Piece::Text(text)] if !output.on_terminal() => output.write(text.as_bytes()),
        pieces => content::print(output, pieces),
    }
}
