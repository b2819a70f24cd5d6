//! stdin and stdout as the loop sees them.

use std::os::fd::OwnedFd;
use std::task::Poll;

use super::*;

#[tokio::test]
async fn p16_writing_to_a_dead_child_is_an_error_and_nothing_worse() {
    let (child, _stdout, mut stdin) = start(Command::new("true")).await;
    assert_eq!(in_time(child.exited()).await.code, Some(0));
    let error = write_all(&mut stdin, b"hello\n").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn a_reader_that_goes_away_is_noticed_without_writing() {
    let (_child, mut stdout, mut stdin) =
        start(sh("read x; exec 0<&-; echo closed; sleep 600")).await;
    assert!(poll_fn(|cx| Poll::Ready(stdin.poll_gone(cx))).await.is_pending());
    write_all(&mut stdin, b"go\n").await.unwrap();
    in_time(poll_fn(|cx| stdin.poll_gone(cx))).await;
    in_time(poll_fn(|cx| stdin.poll_gone(cx))).await;
    assert_eq!(lines(&mut stdout, 1).await, ["closed"]);
}

#[tokio::test]
async fn a_full_pipe_is_pending_and_wakes_when_the_child_reads() {
    let (_child, mut stdout, mut stdin) = start(sh("read x; echo $x; wc -c")).await;
    write_all(&mut stdin, b"first\n").await.unwrap();
    assert_eq!(lines(&mut stdout, 1).await, ["first"]);
    let mega = vec![b'x'; 3 * 1024 * 1024];
    write_all(&mut stdin, &mega).await.unwrap();
    drop(stdin);
    assert_eq!(lines(&mut stdout, 1).await[0].trim(), mega.len().to_string());
}

#[tokio::test]
async fn a_read_without_room_is_no_end_of_input() {
    let (_child, mut stdout, _stdin) = start(sh("echo x; cat")).await;
    let mut full = Vec::new();
    assert_eq!(in_time(poll_fn(|cx| stdout.poll_read(cx, &mut full))).await.unwrap(), 2);
    assert_eq!(full, b"x\n");
}

/// W11: no size of pipe is relied upon.
#[tokio::test]
async fn w11_a_pipe_of_one_page_carries_as_much_as_any_other() {
    let (theirs, ours): (OwnedFd, OwnedFd) = rustix::pipe::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&ours, 4096).unwrap();
    let (mut reader, mut writer) = (ReadPipe::new(theirs).unwrap(), WritePipe::new(ours).unwrap());
    let sent: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    let write = async {
        write_all(&mut writer, &sent).await.unwrap();
        drop(writer);
    };
    let (seen, ()) = in_time(async { tokio::join!(read_all(&mut reader), write) }).await;
    assert!(seen == sent, "{} bytes arrived", seen.len());
}
