//! How a bridge ends: open calls get time to finish, then the servers are ended.
//!
//! Knows time and the proxy; must not know where the clients come from.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use taut::Proxy;

use crate::signals::Interrupts;

/// How long clients may take to read the errors of calls that were cut off.
const LAST_ERRORS: Duration = Duration::from_secs(1);

/// Waits until `serving`, which takes nothing new any more, has finished what it had accepted. After `limit`
/// the servers are ended, so that the open calls fail and their clients are told. A further signal ends it at
/// once, and what `serving` came to is then not known.
pub(super) async fn finish<T>(
    proxy: &Proxy,
    limit: Duration,
    interrupts: &mut Interrupts,
    serving: impl Future<Output = T>,
) -> Option<T> {
    let mut serving = pin!(serving);
    tokio::select! {
        done = &mut serving => return Some(done),
        () = tokio::time::sleep(limit) => {}
        () = interrupts.next() => return None,
    }
    let ended = async {
        proxy.close().await;
        tokio::time::sleep(LAST_ERRORS).await;
    };
    tokio::select! {
        done = &mut serving => Some(done),
        () = ended => None,
        () = interrupts.next() => None,
    }
}
