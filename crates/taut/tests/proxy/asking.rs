//! Questions, in all four combinations of eras. `crate::way` says how; `taut-nats` runs this over a broker.

use serde_json::json;
use taut::types::ElicitResult;
use taut::{Client, Error};

use crate::way::joined;
use crate::world::{COMBINATIONS, Heard, host};

#[tokio::test]
async fn a_form_is_filled_in_and_the_second_depends_on_the_first() {
    for (front, back) in COMBINATIONS {
        let heard = Heard::default();
        let client = joined(front, back, host(&heard)).await;
        let answer = client.call("form", json!({})).await.unwrap();
        assert_eq!(answer.text().unwrap(), "line 1 then line 2", "{front} {back}");
        assert_eq!(heard.lines(), ["form first?", "form after line 1?"]);
    }
}

/// A person who declines or closes the form: the tool learns which.
#[tokio::test]
async fn a_form_that_is_not_filled_in_is_told_as_such() {
    for (front, back) in COMBINATIONS {
        for (reply, told) in
            [(ElicitResult::decline(), "declined"), (ElicitResult::cancel(), "closed")]
        {
            let asked = Heard::default();
            let heard = asked.clone();
            let client = Client::builder().on_elicit(move |form, _| {
                heard.add(form.message);
                let reply = reply.clone();
                async move { reply }
            });
            let client = joined(front, back, client).await;
            let answer = client.call("form", json!({})).await.unwrap();
            assert_eq!(answer.text().unwrap(), told, "{front} {back}");
            assert_eq!(asked.lines(), ["first?"], "{front} {back}");
        }
    }
}

#[tokio::test]
async fn a_page_is_shown() {
    for (front, back) in COMBINATIONS {
        let heard = Heard::default();
        let client = joined(front, back, host(&heard)).await;
        let answer = client.call("page", json!({})).await.unwrap();
        assert!(answer.text().unwrap().contains("Accepted"), "{front} {back}");
        assert_eq!(heard.lines(), ["page https://example.com/pay"]);
    }
}

#[tokio::test]
async fn a_model_is_asked_with_tools() {
    for (front, back) in COMBINATIONS {
        let heard = Heard::default();
        let client = joined(front, back, host(&heard)).await;
        let answer = client.call("sample", json!({})).await.unwrap();
        assert_eq!(answer.text().unwrap(), "model-x", "{front} {back}");
        assert_eq!(heard.lines(), ["sample with 1 tools"]);
    }
}

#[tokio::test]
async fn roots_are_told() {
    for (front, back) in COMBINATIONS {
        let client = joined(front, back, host(&Heard::default())).await;
        let answer = client.call("roots", json!({})).await.unwrap();
        assert_eq!(answer.text().unwrap(), "file:///home", "{front} {back}");
    }
}

/// A client that offers nothing is not asked, and the call ends.
#[tokio::test]
async fn a_client_that_cannot_be_asked_gets_an_error_that_says_so() {
    for (front, back) in COMBINATIONS {
        let client = joined(front, back, Client::builder()).await;
        let refused = client.call("form", json!({})).await;
        let refused = refused.and_then(|answer| answer.text().map(drop)).unwrap_err();
        match (front.is_modern() && back.is_modern(), &refused) {
            (true, Error::Refused { error, .. }) => {
                assert_eq!(error.code, -32021, "{front} {back}")
            }
            // The tool's own words are never replaced.
            (false, Error::Tool { .. }) => {}
            _ => panic!("{front} {back}: {refused:?}"),
        }
    }
}
