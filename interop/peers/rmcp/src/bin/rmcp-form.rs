//! taut asks rmcp's client with a form that has a `u8`, an `i32`, an `f64` and text, in both eras.
//!
//! rmcp reads the bounds and defaults of a whole number as integers: a form with `0.0` there is refused, and the tool
//! that asks fails. Both sides are in this process, on a pipe in memory; `interop/rmcp-form` runs it.

use std::sync::{Arc, Mutex};

use rmcp::model::*;
use rmcp::service::{RequestContext, RoleClient};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, ServiceExt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use taut::{AskError, JsonSchema, NoArgs, Server, ServerBuilder, UserReply};

/// A trip
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Trip {
    /// How many people?
    #[serde(default = "two")]
    people: u8,
    /// How many metres up, or down?
    climb: i32,
    /// How many kilometres?
    #[serde(default = "one")]
    distance: f64,
    /// Where to?
    place: String,
    /// How many nights?
    #[schemars(range(min = 0, max = 30))]
    nights: Option<u32>,
}

fn two() -> u8 {
    2
}

fn one() -> f64 {
    1.0
}

/// Answers each form, and keeps the schema as rmcp has read it.
#[derive(Clone, Default)]
struct Handler(Arc<Mutex<Vec<Value>>>);

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("rmcp", "1.0.0"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.0.lock().expect("no panic").push(json!(request)["requestedSchema"].clone());
        let form = json!({ "people": 3, "climb": -120, "distance": 12.5, "place": "Bern", "nights": 2 });
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(form))
    }
}

fn server() -> ServerBuilder {
    Server::builder("trips", "1").tool(("plan", "Plan a trip."), async |_: NoArgs, call| {
        let said = match call.ask::<Trip>("Which trip?").await? {
            UserReply::Accepted(trip) => serde_json::to_string(&trip).unwrap_or_default(),
            other => format!("{other:?}"),
        };
        Ok::<_, AskError>(said)
    })
}

/// What the tool says, and the form's fields as rmcp has read them.
async fn asked(modern: bool) -> Result<(String, Value), Box<dyn std::error::Error + Send + Sync>> {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let server = server().build()?;
    tokio::spawn(async move { server.serve(reader, writer).await });
    let handler = Handler::default();
    let forms = handler.0.clone();
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let client = match modern {
        true => {
            let mode = ClientLifecycleMode::Discover { preferred_versions };
            handler.serve_with_lifecycle(theirs, mode).await?
        }
        false => handler.serve(theirs).await?,
    };
    let answer = client.call_tool(CallToolRequestParams::new("plan".to_owned())).await?;
    client.cancel().await?;
    let said = json!(answer.content)[0]["text"].as_str().unwrap_or_default().to_owned();
    let form = forms.lock().expect("no panic").pop().unwrap_or_default();
    Ok((said, form["properties"].clone()))
}

#[tokio::main]
async fn main() {
    let mut faults = 0;
    for modern in [false, true] {
        let era = if modern { "2026-07-28" } else { "the newest revision with a handshake" };
        let limit = std::time::Duration::from_secs(30);
        let seen = match tokio::time::timeout(limit, asked(modern)).await {
            Ok(Ok((said, fields))) => {
                let trip = json!({ "people": 3, "climb": -120, "distance": 12.5, "place": "Bern", "nights": 2 });
                let answered = serde_json::from_str::<Value>(&said).is_ok_and(|said| said == trip);
                let bounds = fields["people"]["minimum"] == 0 && fields["people"]["maximum"] == 255;
                match answered && bounds {
                    true => format!("answered, and read back: {said}"),
                    false => {
                        faults += 1;
                        format!("WRONG: the tool says {said:?}; rmcp has read {fields}")
                    }
                }
            }
            Ok(Err(error)) => {
                faults += 1;
                format!("WRONG: {error}")
            }
            Err(_) => {
                faults += 1;
                format!("WRONG: nothing after {limit:?}")
            }
        };
        println!("a form with u8, i32, f64 and text, {era}: {seen}");
    }
    std::process::exit(faults);
}
