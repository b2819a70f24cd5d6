//! Plays a server to a client that is checked: `taut-check-player SCENARIO FOLDER`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [scenario, folder] = words.as_slice() else { return ExitCode::from(2) };
    match taut_check::play(scenario, folder.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
