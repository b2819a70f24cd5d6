//! The addresses that clients follow, each with the number of those who do, bounded in bytes.

use std::collections::BTreeMap;

use crate::rpc::ErrorObject;

/// Most bytes of addresses that are kept for one session, or for all streams of one connection: as much as
/// may wait in a queue.
const MAX_FOLLOWED: usize = 4 << 20;

/// What an address takes beside its text.
const ENTRY: usize = 64;

/// A set of addresses. One that several clients follow stays until the last one leaves it.
#[derive(Default)]
pub(super) struct Followed {
    uris: BTreeMap<String, usize>,
    bytes: usize,
}

impl Followed {
    /// Adds one follower. Returns whether nobody has followed the address so far, or an error if there is no
    /// room for it.
    pub(super) fn add(&mut self, uri: &str) -> Result<bool, ErrorObject> {
        if let Some(count) = self.uris.get_mut(uri) {
            *count += 1;
            return Ok(false);
        }
        let bytes = self.bytes.saturating_add(uri.len() + ENTRY);
        if bytes > MAX_FOLLOWED {
            return Err(ErrorObject::invalid_params(format!(
                "the addresses that are followed would take more than {MAX_FOLLOWED} bytes; unsubscribe from some first"
            )));
        }
        self.bytes = bytes;
        self.uris.insert(uri.to_owned(), 1);
        Ok(true)
    }

    /// Takes one follower away. Returns whether it was the last one.
    pub(super) fn remove(&mut self, uri: &str) -> bool {
        let Some(count) = self.uris.get_mut(uri) else { return false };
        *count -= 1;
        if *count > 0 {
            return false;
        }
        self.uris.remove(uri);
        self.bytes -= uri.len() + ENTRY;
        true
    }

    pub(super) fn contains(&self, uri: &str) -> bool {
        self.uris.contains_key(uri)
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.uris.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stays_until_the_last_follower_leaves_it() {
        let mut followed = Followed::default();
        assert_eq!(followed.add("a").ok(), Some(true));
        assert_eq!(followed.add("a").ok(), Some(false));
        assert!(!followed.remove("a"));
        assert!(followed.contains("a"));
        assert!(followed.remove("a"));
        assert!(!followed.remove("a"));
        assert_eq!((followed.all().len(), followed.bytes), (0, 0));
    }

    #[test]
    fn addresses_are_bounded_in_bytes() {
        let mut followed = Followed::default();
        let uris: Vec<String> = (0..100).map(|n| format!("{n:03}{}", "x".repeat(99_997))).collect();
        let fit = uris.iter().filter(|uri| followed.add(uri).is_ok()).count();
        assert_eq!(fit, MAX_FOLLOWED / (100_000 + ENTRY));
        let error = followed.add(&uris[99]).unwrap_err();
        assert!(error.message.contains("unsubscribe"), "{}", error.message);
        // What was left makes room.
        assert!(followed.remove(&uris[0]));
        assert_eq!(followed.add(&uris[99]).ok(), Some(true));
    }
}
