//! The hash of the tables that calls are looked up in.
//!
//! Pure. Names of calls are for edges to choose, so the key is random. A call is looked up several times on its way, and
//! SipHash took as long for that as everything else that its worker decides about it.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The key of a table.
#[derive(Clone, Copy)]
pub(crate) struct Key(u64);

impl Default for Key {
    fn default() -> Self {
        Self(RandomState::new().build_hasher().finish() | 1)
    }
}

impl BuildHasher for Key {
    type Hasher = Mix;

    fn build_hasher(&self) -> Mix {
        Mix(self.0)
    }
}

/// Mixes eight bytes at a time.
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // With the length, so that zeros at the end count.
        self.write_u64(u64::from_le_bytes(last) ^ ((bytes.len() as u64) << 56));
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_that_differ_little_are_spread() {
        let key = Key::default();
        let name = |n: u32| format!("_INBOX.abcdefghijklmnopqrstuv.{n}");
        let hashes: HashSet<u64> = (0..10_000).map(|n| key.hash_one(name(n))).collect();
        assert_eq!(hashes.len(), 10_000);
        // A table looks at the low bits, and at the highest seven.
        for bits in [|hash: u64| hash & 0xff, |hash: u64| hash >> 57] {
            let seen: HashSet<u64> = hashes.iter().map(|hash| bits(*hash)).collect();
            assert!(seen.len() >= 120, "{}", seen.len());
        }
        assert_eq!(key.hash_one("a"), key.hash_one("a"));
        assert_ne!(key.hash_one("a"), Key::default().hash_one("a"));
        assert_ne!(key.hash_one("a\0"), key.hash_one("a"));
    }
}
