//! Which parameters of a tool are repeated in headers, as its own server has listed them.
//!
//! Knows lists of tools; must not know who answers. A service that forwards to another does not know the
//! other's schemas (`MessageService::tool_schema` is `None`), but it passes the list on before anybody can
//! call a tool whose parameters are repeated. Lists may differ by principal.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use serde_json::value::RawValue;
use taut::transport::Principal;
use taut::types::ParameterHeader;

/// How many tools are remembered, of all principals together. Hardly any tool has such a parameter.
const MOST: usize = 4096;

/// What was seen in lists of tools.
#[derive(Default)]
pub(super) struct Learned {
    tools: Mutex<HashMap<(Principal, String), Vec<ParameterHeader>>>,
}

#[derive(Deserialize)]
struct Listed<'a> {
    #[serde(borrow)]
    tools: Vec<ListedTool<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedTool<'a> {
    name: String,
    #[serde(borrow)]
    input_schema: &'a RawValue,
}

impl Learned {
    /// Takes in the result of `tools/list` that `principal` got.
    pub(super) fn see(&self, principal: &Principal, result: &RawValue) {
        let Ok(Listed { tools }) = serde_json::from_str(result.get()) else { return };
        let mut known = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        for ListedTool { name, input_schema } in tools {
            // A tool whose annotations are wrong has none (PAR-04).
            let headers = ParameterHeader::of_schema(input_schema.get()).unwrap_or_default();
            let key = (principal.clone(), name);
            match headers.is_empty() {
                true => drop(known.remove(&key)),
                false if known.len() < MOST => drop(known.insert(key, headers)),
                // What is not known is not checked.
                false => {}
            }
        }
    }

    /// The parameters of a tool that `principal` has listed.
    pub(super) fn of(&self, principal: &Principal, tool: &str) -> Vec<ParameterHeader> {
        let known = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return Vec::new();
        }
        known.get(&(principal.clone(), tool.to_owned())).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(json: &str) -> Box<RawValue> {
        serde_json::from_str(json).unwrap()
    }

    /// PAR-05 for services that forward.
    #[test]
    fn par_05_parameters_are_learnt_from_lists_and_forgotten_with_them() {
        let (ann, bob) = (Principal::new("ann"), Principal::new("bob"));
        let learned = Learned::default();
        let with = r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}"#;
        let tool =
            |schema: &str| list(&format!(r#"{{"tools":[{{"name":"t","inputSchema":{schema}}}]}}"#));
        learned.see(&ann, &tool(with));
        assert_eq!(learned.of(&ann, "t")[0].name(), "A");
        assert!(learned.of(&bob, "t").is_empty() && learned.of(&ann, "u").is_empty());
        learned.see(&ann, &list(r#"{"tools":5}"#));
        assert_eq!(learned.of(&ann, "t").len(), 1);
        learned.see(&ann, &tool("{}"));
        assert!(learned.of(&ann, "t").is_empty());
    }
}
