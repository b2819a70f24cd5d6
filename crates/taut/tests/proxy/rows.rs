//! The rows of `docs/eras.md`, one by one, as raw lines on both sides.

use crate::raw::{answer, front, modern, opened_legacy, proxy};

/// A list has no place for a question in the modern era. A legacy server that asks for roots once it is
/// ready gets a refusal, and the list comes.
#[tokio::test]
async fn a_question_during_a_list_is_refused_and_the_list_comes() {
    for (method, members) in [
        ("tools/list", ""),
        ("resources/list", ""),
        ("completion/complete", r#""ref":{"type":"ref/prompt","name":"p"},"argument":{},"#),
    ] {
        let (builder, mut backs) = proxy();
        let proxy = builder.build();
        let mut front = front(&proxy);
        front.send(&modern("1", method, members)).await;
        let mut back = opened_legacy(&mut backs, r#"{"tools":{},"resources":{}}"#).await;
        let request = back.next().await;
        back.send(r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#).await;
        let refused = back.next().await;
        assert!(refused.contains(r#""id":"q","error""#), "{refused}");
        back.send(&answer(&request, r#"{"own":1}"#)).await;
        let answered = front.next().await;
        assert!(answered.contains(r#""id":1,"result":{"own":1,"#), "{answered}");
    }
}
