//! A stream by itself: its order and its bounds, without a session.

use tokio::time::Instant;

use super::*;

const PATIENCE: Duration = Duration::from_secs(5);

fn event(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

async fn push(log: &EventLog, text: &'static str) -> Vec<Bytes> {
    log.push(EventKind::Other, event(text), PATIENCE).await
}

async fn read(log: &EventLog, reader: u64) -> Option<(u64, Bytes)> {
    poll_fn(|cx| log.poll_read(reader, cx)).await
}

/// SSE-09: reading on begins after the event that is named, with what is still kept.
#[tokio::test]
async fn sse_09_a_reader_begins_after_the_event_that_it_names() {
    let log = EventLog::new(3, 10);
    for text in ["one", "two", "three"] {
        push(&log, text).await;
    }
    // "one" had to go: eleven bytes are more than ten.
    for (after, first) in [(0, 2), (1, 2), (2, 3)] {
        let reader = log.attach(Some(after));
        assert_eq!(read(&log, reader).await.unwrap().0, first, "after {after}");
        log.detach(reader, false);
    }
    let reader = log.attach(Some(u64::MAX));
    log.finish();
    assert_eq!(read(&log, reader).await, None);
}

#[tokio::test]
async fn what_nobody_read_is_given_back_when_it_has_to_go() {
    let log = EventLog::new(1, 8);
    assert!(push(&log, "aaaa").await.is_empty());
    assert!(push(&log, "bbbb").await.is_empty());
    assert_eq!(push(&log, "cccc").await, [event("aaaa")]);
    // Longer than everything that is kept: it is kept alone.
    assert_eq!(push(&log, "dddddddddddd").await, [event("bbbb"), event("cccc")]);
    assert_eq!(log.bytes(), 12);
    let reader = log.attach(None);
    assert_eq!(read(&log, reader).await, Some((4, event("dddddddddddd"))));
    // What was read goes without a word.
    assert!(push(&log, "eeee").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_writer_waits_for_its_reader_and_closes_one_that_does_not_read() {
    let log = EventLog::new(1, 8);
    let reader = log.attach(None);
    push(&log, "aaaa").await;
    push(&log, "bbbb").await;
    let other = log.clone();
    let writing = tokio::spawn(async move { push(&other, "cccc").await });
    tokio::task::yield_now().await;
    assert!(!writing.is_finished());
    assert_eq!(read(&log, reader).await, Some((1, event("aaaa"))));
    assert!(writing.await.unwrap().is_empty());
    let begun = Instant::now();
    assert_eq!(push(&log, "dddd").await, [event("bbbb")]);
    assert_eq!(begun.elapsed(), PATIENCE);
    assert_eq!(read(&log, reader).await, None);
}

#[test]
fn sse_07_event_ids_name_their_stream() {
    assert_eq!(event_id(7, 12), "7.12");
    assert_eq!(read_event_id("7.12"), Some((7, 12)));
    for wrong in ["", "7", "7.", ".1", "7.1.2", "-1.1", "7.x", "7.99999999999999999999"] {
        assert_eq!(read_event_id(wrong), None, "{wrong}");
    }
}
