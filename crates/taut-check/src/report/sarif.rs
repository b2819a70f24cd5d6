//! The report as SARIF 2.1.0, which code hosts read.

use serde_json::{Value, json};

use super::{Report, Row};
use crate::check::Level;

impl Report {
    /// The report in the form of SARIF 2.1.0. `file` is the file that results are shown at: the format
    /// wants one, and a server has none, so its configuration is a good choice.
    #[must_use]
    pub fn sarif(&self, file: &str) -> Value {
        let failed: Vec<&Row> = self.rows.iter().filter(|row| row.verdict.failed()).collect();
        let mut ids: Vec<&str> = failed.iter().map(|row| row.id).collect();
        ids.dedup();
        ids.sort_unstable();
        ids.dedup();
        let rules: Vec<Value> = ids
            .iter()
            .filter_map(|id| failed.iter().find(|row| row.id == *id))
            .map(|row| rule(row))
            .collect();
        let index = |id: &str| ids.iter().position(|known| *known == id).unwrap_or_default();
        let results: Vec<Value> =
            failed.iter().map(|row| result(row, index(row.id), file)).collect();
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": {
                    "name": "taut check",
                    "informationUri": "https://modelcontextprotocol.io/specification",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": rules,
                } },
                "columnKind": "unicodeCodePoints",
                "results": results,
            }],
        })
    }
}

fn level(row: &Row) -> &'static str {
    match row.level {
        Level::Must => "error",
        Level::Should => "warning",
        Level::Advice => "note",
    }
}

fn rule(row: &Row) -> Value {
    json!({
        "id": row.id,
        "shortDescription": { "text": row.rule },
        "fullDescription": { "text": format!("{} {}", row.rule, row.hosts) },
        "helpUri": row.page,
        "defaultConfiguration": { "level": level(row) },
        "properties": { "tags": row.rules },
    })
}

/// What the SDK breaks is no error of the server.
fn weight(row: &Row) -> &'static str {
    match row.level {
        Level::Must if row.warns() => "warning",
        _ => level(row),
    }
}

fn result(row: &Row, index: usize, file: &str) -> Value {
    let text = format!("{}: {} ({})", row.revision.as_str(), row.words(), row.rule);
    json!({
        "ruleId": row.id,
        "ruleIndex": index,
        "level": weight(row),
        "message": { "text": text },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": file },
            "region": { "startLine": 1 },
        } }],
        "partialFingerprints": { "check/v1": row.key() },
        "properties": { "revision": row.revision.as_str(), "exchange": row.exchange },
    })
}
