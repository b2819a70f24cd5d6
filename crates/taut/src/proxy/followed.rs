//! The addresses that clients follow, each with the number of those who do, bounded in bytes, in the order in which
//! they came: where a server takes only so many, it is to keep the first.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::rpc::ErrorObject;

/// What an address takes beside its text.
const ENTRY: usize = 64;

/// A set of addresses. One that several clients follow stays until the last one leaves it.
#[derive(Default)]
pub(super) struct Followed {
    uris: HashMap<Arc<str>, Follower>,
    order: BTreeMap<u64, Arc<str>>,
    next: u64,
    bytes: usize,
    /// How many bytes there may be, see `ProxyBuilder::max_subscription_bytes`.
    max: usize,
}

struct Follower {
    count: usize,
    /// Its key in the order.
    place: u64,
}

impl Followed {
    pub(super) fn new(max: usize) -> Self {
        Self { max, ..Self::default() }
    }

    /// Adds one follower. Returns whether nobody has followed the address so far, or an error if there is no
    /// room for it.
    pub(super) fn add(&mut self, uri: &str) -> Result<bool, ErrorObject> {
        if let Some(known) = self.uris.get_mut(uri) {
            known.count += 1;
            return Ok(false);
        }
        let bytes = self.bytes.saturating_add(uri.len() + ENTRY);
        if bytes > self.max {
            return Err(ErrorObject::invalid_params(format!(
                "the addresses that are followed would take more than {} bytes \
                 (ProxyBuilder::max_subscription_bytes); unsubscribe from some first",
                self.max
            )));
        }
        self.bytes = bytes;
        let (uri, place): (Arc<str>, u64) = (uri.into(), self.next);
        self.next += 1;
        self.order.insert(place, uri.clone());
        self.uris.insert(uri, Follower { count: 1, place });
        Ok(true)
    }

    /// Takes one follower away. Returns whether it was the last one.
    pub(super) fn remove(&mut self, uri: &str) -> bool {
        let Some(known) = self.uris.get_mut(uri) else { return false };
        known.count -= 1;
        if known.count > 0 {
            return false;
        }
        self.order.remove(&known.place);
        self.uris.remove(uri);
        self.bytes -= uri.len() + ENTRY;
        true
    }

    pub(super) fn contains(&self, uri: &str) -> bool {
        self.uris.contains_key(uri)
    }

    /// All of them, the first first.
    pub(super) fn all(&self) -> Vec<String> {
        self.order.values().map(|uri| uri.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stays_until_the_last_follower_leaves_it() {
        let mut followed = Followed::new(1 << 10);
        assert_eq!(followed.add("a").ok(), Some(true));
        assert_eq!(followed.add("a").ok(), Some(false));
        assert!(!followed.remove("a"));
        assert!(followed.contains("a"));
        assert!(followed.remove("a"));
        assert!(!followed.remove("a"));
        assert_eq!((followed.all().len(), followed.bytes), (0, 0));
    }

    #[test]
    fn addresses_keep_the_order_in_which_they_came() {
        let mut followed = Followed::new(1 << 10);
        for uri in ["c", "a", "b", "a"] {
            let _ = followed.add(uri);
        }
        followed.remove("c");
        let _ = followed.add("c");
        assert_eq!(followed.all(), ["a", "b", "c"]);
    }

    #[test]
    fn addresses_are_bounded_in_bytes() {
        let mut followed = Followed::new(3 * (100 + ENTRY));
        let uris: Vec<String> = (0..9).map(|n| format!("{n}{}", "x".repeat(99))).collect();
        let fit = uris.iter().filter(|uri| followed.add(uri).is_ok()).count();
        assert_eq!(fit, 3);
        let error = followed.add(&uris[8]).unwrap_err();
        assert!(
            error.message.contains("ProxyBuilder::max_subscription_bytes"),
            "{}",
            error.message
        );
        // What was left makes room.
        assert!(followed.remove(&uris[0]));
        assert_eq!(followed.add(&uris[8]).ok(), Some(true));
    }
}
