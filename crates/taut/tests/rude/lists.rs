//! What the rude server lists.

use serde_json::{Value, json};

use super::{Server, die};

impl Server {
    pub(super) fn list(&self, id: &Value, params: &Value) {
        if self.has("die-on-list") {
            die();
        }
        // Three pages of two; the cursor of the second is the empty string (PAG-03).
        let (first, next) = match params["cursor"].as_str() {
            None => (0, json!("")),
            Some("") => (2, json!("c")),
            Some(_) if self.has("circular") => (4, json!("c")),
            Some(_) => (4, Value::Null),
        };
        let mut page = json!({ "tools": [self.tool(first), self.tool(first + 1)] });
        if !next.is_null() {
            page["nextCursor"] = next;
        }
        self.result(id, page);
    }

    fn tool(&self, n: u64) -> Value {
        let name = match n {
            1 if self.has("same-name") => "t0".to_owned(),
            1 if self.has("odd-name") => "two words".to_owned(),
            _ => format!("t{n}"),
        };
        match n {
            1 if self.has("no-schema") => json!({ "name": name, "input_schema": {} }),
            1 if self.has("string-schema") => json!({ "name": name, "inputSchema": "none" }),
            1 if self.has("odd-schema") => {
                json!({ "name": name, "inputSchema": { "type": "string" } })
            }
            _ => json!({ "name": name, "inputSchema": { "type": "object" } }),
        }
    }
}
