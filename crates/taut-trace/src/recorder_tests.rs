//! Disks that are slow, full, and free again: what is missing is counted, and nobody waits.

use std::io::{BufReader, Read as _};

use super::*;
use crate::format::Event;
use crate::read::Capture;

const LINES: u64 = 80_000;

/// A disk that takes nothing for a while, again and again, and all that waits for it in between.
#[test]
fn a_slow_disk_drops_records_and_counts_each_of_them_at_each_gap() {
    #[cfg(unix)]
    use std::os::fd::OwnedFd as Owned;
    #[cfg(windows)]
    use std::os::windows::io::OwnedHandle as Owned;
    use std::sync::{Condvar, Mutex};
    let (mut reader, writer) = io::pipe().unwrap();
    let file = File::from(Owned::from(writer));
    let recorder = Recorder::start(Some(file), Session::default(), Masker::off(), None).unwrap();
    let tap = recorder.tap(Stream::Client);
    let line = |number: u64| {
        let more = "x".repeat(400);
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":[{number},\"{more}\"]}}\n")
    };
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let own = Arc::clone(&gate);
    let disk = std::thread::spawn(move || {
        let (mut all, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            drop(own.1.wait_while(own.0.lock().unwrap(), |open| !*open).unwrap());
            match reader.read(&mut chunk).unwrap() {
                0 => return all,
                count => all.extend_from_slice(&chunk[..count]),
            }
        }
    });
    let takes = |open: bool| {
        *gate.0.lock().unwrap() = open;
        gate.1.notify_all();
    };
    for number in 0..LINES {
        // Returns although the disk takes nothing; the test would hang here otherwise. In two pieces, so that gaps begin
        // and end within lines, too.
        let line = line(number);
        let (one, two) = line.as_bytes().split_at(usize::try_from(number).unwrap() % line.len());
        tap.bytes(one);
        tap.bytes(two);
        if number % (LINES / 4) == LINES / 4 - 1 {
            takes(true);
            let until = Instant::now() + Duration::from_secs(60);
            while !recorder.shared.queue.is_idle() {
                assert!(Instant::now() < until, "what waited is not taken");
                std::thread::yield_now();
            }
            takes(false);
        }
    }
    tap.closed();
    takes(true);
    assert!(recorder.finish(), "the disk took everything that was left");
    let kept = disk.join().unwrap();
    let capture = Capture::read(BufReader::new(&kept[..])).unwrap();
    assert_eq!(capture.damaged, 0);
    let (mut next, mut gaps) = (0, 0);
    for record in &capture.records {
        match &record.event {
            Event::Gap(gap) => {
                assert!(gap.records > 0);
                next += gap.records;
                gaps += 1;
            }
            Event::Message(message) => {
                let value: serde_json::Value = serde_json::from_str(&message.body.text()).unwrap();
                assert_eq!(value["params"][0], next, "after {gaps} gaps");
                next += 1;
            }
            _ => {}
        }
    }
    assert!(gaps > 1, "{gaps} gaps");
    assert_eq!(next, LINES);
}

/// A disk that is full for a while: the capture goes on with a record of what is missing.
// About Linux itself: a device that is always full.
#[cfg(all(target_os = "linux", not(taut_portable)))]
#[test]
fn a_disk_that_was_full_gets_a_record_of_what_is_missing() {
    use crate::read::record;
    let path = std::env::temp_dir().join(format!("taut-recorder-{}", std::process::id()));
    let shared =
        Shared { queue: Queue::default(), began: Instant::now(), writes: AtomicU64::new(0) };
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut sink = Sink { file: Some(full), ..Sink::default() };
    for _ in 0..3 {
        format::write_start(&mut sink.lines, 1, 7);
        format::write_close(&mut sink.lines, 2, Stream::Client);
        sink.flush(&shared);
    }
    assert_eq!((sink.lost, sink.good), (6, 0));
    let (file, _) = create(&path, "x").unwrap();
    sink.file = Some(file);
    format::write_end(&mut sink.lines, 3, &End::Code(0));
    sink.flush(&shared);
    let text = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let events: Vec<Event> = lines.filter_map(record).map(|record| record.event).collect();
    let [.., Event::Gap(gap), Event::End(End::Code(0))] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert!(gap.records == 6 && gap.why.contains("No space left"), "{gap:?}");
}

/// Records of several connections keep their names, and a whole message that does not fit is counted.
#[test]
fn messages_of_several_connections_keep_their_names() {
    let path = std::env::temp_dir().join(format!("taut-links-{}", std::process::id()));
    let (file, _) = create(&path, "x").unwrap();
    let recorder = Recorder::start(Some(file), Session::default(), Masker::off(), None).unwrap();
    let links = recorder.links();
    links.message("client 1".into(), Side::Client, Framing::Lines, br#"{"id":1}"#);
    links.message("server 2".into(), Side::Client, Framing::Headers, br#"{"id":1}"#);
    links.message("server 2".into(), Side::Server, Framing::Lines, &vec![b' '; 6 << 20]);
    links.stderr("warm");
    assert!(recorder.finish());
    let capture = Capture::read(BufReader::new(File::open(&path).unwrap())).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(capture.links(), ["client 1", "server 2"]);
    let gaps = capture.records.iter().filter(|record| matches!(record.event, Event::Gap(_)));
    assert_eq!(gaps.count(), 1);
    let own = capture.only("server 2");
    let (_, message) = own.messages().next().unwrap();
    assert_eq!((message.framing, own.messages().count()), (Framing::Headers, 1));
}

/// A large message on a busy machine took longer than a second to become a line, and the end was lost.
#[test]
fn a_recorder_that_is_busy_is_waited_for_and_a_disk_that_hangs_is_not() {
    let recorder = |writes: u64| {
        let (queue, began) = (Queue::default(), Instant::now());
        Recorder { shared: Arc::new(Shared { queue, began, writes: AtomicU64::new(writes) }) }
    };
    let busy = recorder(0);
    let shared = Arc::clone(&busy.shared);
    let ends = std::thread::spawn(move || {
        // Longer than anybody waits for a disk: the time is what is tested.
        std::thread::sleep(PATIENCE + PATIENCE / 2);
        shared.queue.finish();
    });
    assert!(busy.finish());
    ends.join().unwrap();
    let began = Instant::now();
    assert!(!recorder(1).finish());
    assert!(began.elapsed() < LONGEST_WAIT, "{:?}", began.elapsed());
}
