//! The hash of the tables that ids are looked up in.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

/// A keyed hash for tables that are small, short-lived and bounded. Ids are the peer's to choose,
/// so the key is random; the mixing is far cheaper than SipHash, which shows at a million a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(u64);

/// A table for no more entries than this is not made smaller.
const SMALL: usize = 256;

/// Removes an entry. What a flood of them had taken is given back: a table that is nearly empty is made smaller, which
/// moves each entry once for many that were removed.
pub(crate) fn take<K: Eq + Hash, V>(map: &mut HashMap<K, V, Seed>, key: &K) -> Option<V> {
    let taken = map.remove(key);
    if map.capacity() > SMALL && map.len() < map.capacity() / 8 {
        map.shrink_to(2 * map.len());
    }
    taken
}

impl Default for Seed {
    fn default() -> Self {
        Self(RandomState::new().build_hasher().finish() | 1)
    }
}

impl BuildHasher for Seed {
    type Hasher = Mix;

    fn build_hasher(&self) -> Mix {
        Mix(self.0)
    }
}

#[derive(Debug)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word) ^ ((chunk.len() as u64) << 56));
        }
    }

    fn write_u64(&mut self, word: u64) {
        // A 64-bit factor, so that the product fits: a wider one overflows on the first request.
        let product = u128::from(self.0 ^ word) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_was_large_gives_its_memory_back() {
        let mut map: HashMap<u64, [u8; 64], Seed> = HashMap::default();
        for key in 0..10_000 {
            map.insert(key, [0; 64]);
        }
        for key in 1..10_000 {
            assert!(take(&mut map, &key).is_some());
            assert!(map.contains_key(&0));
        }
        assert!(map.capacity() <= SMALL, "{}", map.capacity());
        assert_eq!(take(&mut map, &1), None);
        assert!(take(&mut map, &0).is_some());
        assert!(map.capacity() > 0, "a small one is kept");
    }
}
