//! How far it is, on one line of stderr that is written between phases only: something that moves
//! while a server is timed would be timed too.

use std::time::{Duration, Instant};

use crate::cells::cut;
use crate::output::Output;

const BAR: usize = 24;

/// The line; wiped away when it is dropped.
#[derive(Debug)]
pub(super) struct Progress {
    /// Where it is drawn, if it is.
    output: Option<Output>,
    began: Instant,
    steps: usize,
    done: usize,
    place: String,
}

impl Progress {
    pub(super) fn new(output: &Output, steps: usize) -> Self {
        let began = Instant::now();
        Self {
            output: output.may_move().then(|| output.clone()),
            began,
            steps,
            done: 0,
            place: String::new(),
        }
    }

    /// Where it is now.
    pub(super) fn place(&mut self, place: &str, who: &str) {
        self.place = format!("{place}, {who}");
    }

    /// The next step begins.
    pub(super) fn step(&mut self, what: &str) {
        if let Some(output) = &self.output {
            let line = line(self.done, self.steps, self.began.elapsed());
            let text = format!("{line} {}: {what}", self.place);
            let text = crate::gate::escape::line(&text).into_owned();
            output.draw(&cut(&text, Output::moving_width()));
        }
        self.done += 1;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(output) = &self.output {
            output.draw("");
        }
    }
}

fn line(done: usize, steps: usize, took: Duration) -> String {
    let full = (done * BAR).checked_div(steps).unwrap_or(0).min(BAR);
    let bar = format!("{}{}", "█".repeat(full), "░".repeat(BAR - full));
    // The first steps say little about the others.
    if done < 5 || done * 20 < steps {
        return bar;
    }
    let left = took.as_secs_f64() / done as f64 * steps.saturating_sub(done) as f64;
    format!("{bar} {left:.0} s left,")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_is_left_is_told_once_it_can_be_known() {
        let took = Duration::from_secs(10);
        assert_eq!(line(0, 0, took), "░".repeat(24));
        assert_eq!(line(4, 40, took), format!("{}{}", "█".repeat(2), "░".repeat(22)));
        let half = format!("{}{}", "█".repeat(12), "░".repeat(12));
        assert_eq!(line(20, 40, took), format!("{half} 10 s left,"));
    }
}
