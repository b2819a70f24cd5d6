//! The report as a JUnit file, which build servers read.

use std::fmt::Write as _;

use super::{Report, Row};
use crate::check::{Level, Verdict};

impl Report {
    /// The report in the form of JUnit: one suite per revision, one case per check.
    #[must_use]
    pub fn junit(&self) -> String {
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let failures = self.failures().count();
        let seconds = self.took.as_secs_f64();
        let _ = writeln!(
            text,
            "<testsuites name=\"taut check\" tests=\"{}\" failures=\"{failures}\" errors=\"0\" time=\"{seconds:.3}\">",
            self.rows.len()
        );
        for revision in self.told() {
            let rows: Vec<&Row> = self.rows.iter().filter(|row| row.revision == revision).collect();
            let failed = rows.iter().filter(|row| row.fails()).count();
            let skipped = rows.iter().filter(|row| skipped(row)).count();
            let _ = writeln!(
                text,
                "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\" time=\"{:.3}\">",
                revision.as_str(),
                rows.len(),
                rows.iter().map(|row| row.took.as_secs_f64()).sum::<f64>()
            );
            rows.iter().for_each(|row| case(&mut text, row));
            text.push_str("  </testsuite>\n");
        }
        text.push_str("</testsuites>\n");
        text
    }
}

fn skipped(row: &Row) -> bool {
    matches!(row.verdict, Verdict::Skip(_) | Verdict::Blocked(_))
}

fn case(text: &mut String, row: &Row) {
    let class = format!("taut.check.{}", row.area);
    let _ = write!(
        text,
        "    <testcase name=\"{}\" classname=\"{class}\" time=\"{:.3}\"",
        escaped(row.id),
        row.took.as_secs_f64()
    );
    let what = escaped(row.words());
    match &row.verdict {
        Verdict::Pass => text.push_str("/>\n"),
        Verdict::Fail { .. } if !row.fails() => {
            let word = if row.level == Level::Advice { "advice" } else { "warning" };
            let whose = row.sdk.map(|sdk| format!(" (the SDK's: {})", escaped(sdk)));
            let whose = whose.unwrap_or_default();
            let _ = writeln!(
                text,
                ">\n      <system-out>{word}: {what}{whose}</system-out>\n    </testcase>"
            );
        }
        Verdict::Fail { .. } => {
            let exchange = escaped(&row.exchange.join("\n"));
            let rules = row.rules.join(", ");
            let _ = writeln!(
                text,
                ">\n      <failure message=\"{what}\" type=\"{}\">{}\n{rules}\n{}\n{exchange}</failure>\n    </testcase>",
                row.level.word(),
                escaped(row.rule),
                escaped(&row.page),
            );
        }
        Verdict::Skip(_) | Verdict::Blocked(_) => {
            let _ = writeln!(text, ">\n      <skipped message=\"{what}\"/>\n    </testcase>");
        }
    }
}

/// Text as XML 1.0 may have it: what it may not have at all becomes a replacement character.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(c),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
