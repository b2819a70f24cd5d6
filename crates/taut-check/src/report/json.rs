//! The report as one JSON document.

use serde_json::{Value, json};

use super::{Report, Row};

impl Report {
    /// The report as JSON: what `taut check --json` prints.
    #[must_use]
    pub fn json(&self) -> Value {
        let closed = self
            .closed
            .iter()
            .map(|(revision, why)| json!({ "revision": revision.as_str(), "why": why }));
        let revisions: Vec<_> = self.revisions().iter().map(|revision| revision.as_str()).collect();
        let idle = self.idle.iter().map(|call| json!({ "tool": call.tool, "came": call.came }));
        json!({
            "command": self.command(),
            "passed": self.passed(),
            "revisions": revisions,
            "closed": closed.collect::<Vec<_>>(),
            "idle": idle.collect::<Vec<_>>(),
            "starts": self.starts,
            "took_ms": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
            "pass": self.count("pass"),
            "fail": self.failures().count(),
            "warn": self.warnings().count(),
            "sdk": self.sdk.as_ref().map(|sdk| sdk.package),
            "skip": self.count("skip"),
            "blocked": self.count("blocked"),
            "checks": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }
}

fn row(row: &Row) -> Value {
    json!({
        "id": row.id,
        "revision": row.revision.as_str(),
        "level": row.level.word(),
        "area": row.area,
        "rules": row.rules,
        "verdict": row.verdict.word(),
        "what": row.words(),
        "page": row.page,
        "fails": row.fails(),
        "sdk": row.sdk,
        "took_ms": u64::try_from(row.took.as_millis()).unwrap_or(u64::MAX),
        "exchange": row.exchange,
    })
}
