//! `taut read`: one resource.

use serde::Serialize;
use taut::types::{AtRevision, ResourceContents, WriteJson as _};
use taut::{Client, Revision};

use crate::args::Read;
use crate::content::{self, Piece};
use crate::hosts::resolve;
use crate::output::Output;
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
        let contents = client.read(args.uri.as_str()).await?;
        if output.json {
            return output.document(&document(&contents, client.revision()));
        }
        show(output, &contents)
    };
    let ((), exit) = with_server(output, &args.options, started, work).await?;
    Ok(exit)
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
        [Piece::Text(text)] if !output.on_terminal() => output.print(text),
        pieces => content::print(output, pieces),
    }
}
