//! `taut smoke`: handshake, list, one call, close; a transcript with times.
//!
//! This file knows which server is tried. What is done with it is in `steps.rs` and `called.rs`, what may be called
//! in `pick.rs`, how it is told in `transcript.rs`.

mod all;
mod called;
mod pick;
mod steps;
mod transcript;

pub(crate) use steps::offers;

use serde_json::Value;

use super::call::object;
use crate::args::Smoke;
use crate::hosts::resolve;
use crate::output::Output;
use crate::own;
use crate::problem::{Exit, Problem};
use crate::reach::Reach;
use crate::session::command;
use crate::signals::Interrupts;
use crate::typed;
use transcript::Transcript;

pub(crate) async fn run(output: &Output, args: &Smoke) -> Result<Exit, Problem> {
    let mut options = args.options.clone();
    options.asked.offer_all = true;
    if args.all {
        return all::run(output, &options, args.quiet).await;
    }
    if args.call.is_some()
        && args.args.is_none()
        && args.name.as_deref().is_some_and(|name| name.contains('='))
    {
        return Err(typed::json_args_wanted("smoke"));
    }
    let chosen = chosen(args)?;
    let options = &options;
    let nothing = args.name.is_none() && options.named.is_none() && args.server.is_empty();
    let (started, name) = if nothing && options.config.is_empty() {
        let exe = std::env::current_exe()
            .map_err(|error| Problem::File { what: "finding our own program".into(), error })?;
        let started = command(&[exe.into(), "serve".into()], options);
        (Reach::Start(started), own::named("taut serve"))
    } else {
        let target = resolve(output, options, args.name.as_deref(), &args.server)?;
        (target.reach, target.shown)
    };
    let mut interrupts = Interrupts::new()?;
    let mut smoke = Transcript::new(output, &name)?;
    let exit = smoke.run(options, started, chosen, &mut interrupts).await?;
    // A line `try:` names it already.
    let named = smoke.next.is_some();
    smoke.finish(exit)?;
    if !output.json && !args.quiet && !named {
        let next = typed::again("smoke", "doctor", &[]);
        output.note_next(&match nothing {
            true => format!("{next} -- {} serve", own::name()),
            false => next,
        });
    }
    Ok(exit)
}

/// The call that the command line asks for, whatever it may do.
fn chosen(args: &Smoke) -> Result<Option<(String, Value)>, Problem> {
    let Some(tool) = &args.call else { return Ok(None) };
    let arguments = args.args.as_deref().map(object).transpose()?.unwrap_or_default();
    Ok(Some((tool.clone(), Value::Object(arguments))))
}
