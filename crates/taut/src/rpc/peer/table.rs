//! Requests of the other side that are not answered yet, by id.
//!
//! Knows that most are answered before the next one comes: the newest stands beside the table and
//! moves into it only when another comes, so that a quick answer costs no hashing at all.

use std::collections::HashMap;

use super::{Seed, take};
use crate::rpc::id::Id;

/// What is known of each request that waits for its answer.
#[derive(Debug)]
pub(super) struct Table<T> {
    newest: Option<(Id, T)>,
    older: HashMap<Id, T, Seed>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { newest: None, older: HashMap::default() }
    }
}

impl<T> Table<T> {
    /// The most bytes that a request takes up: there is a power of two of places, of which an eighth
    /// stays free, and they may have just been doubled; each has a byte that tells whether it is.
    pub(super) const PLACE: usize = (size_of::<(Id, T)>() + 1) * 16 / 7;

    pub(super) fn len(&self) -> usize {
        self.older.len() + usize::from(self.newest.is_some())
    }

    #[cfg(feature = "tokio")]
    pub(super) fn ids(&self) -> impl Iterator<Item = &Id> {
        self.older.keys().chain(self.newest.iter().map(|(id, _)| id))
    }

    pub(super) fn get(&self, id: &Id) -> Option<&T> {
        match &self.newest {
            Some((newest, value)) if newest == id => Some(value),
            _ if self.older.is_empty() => None,
            _ => self.older.get(id),
        }
    }

    /// Adds a request. Its id must not be there yet.
    pub(super) fn insert(&mut self, id: Id, value: T) {
        if let Some((id, value)) = self.newest.replace((id, value)) {
            self.older.insert(id, value);
        }
    }

    pub(super) fn remove(&mut self, id: &Id) -> Option<T> {
        match self.newest.take() {
            Some((newest, value)) if newest == *id => return Some(value),
            other => self.newest = other,
        }
        if self.older.is_empty() { None } else { take(&mut self.older, id) }
    }

    /// Gives back what is not needed for those that are there, or for so many.
    pub(super) fn shrink_to(&mut self, least: usize) {
        self.older.shrink_to(least);
    }

    /// How many bytes it takes up.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        (self.older.capacity() * 8).div_ceil(7) * (size_of::<(Id, T)>() + 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map_whatever_is_done_to_it(
            acts in prop::collection::vec((0..3u8, 0..6u64), 0..60)
        ) {
            let (mut table, mut map) = (Table::default(), HashMap::new());
            for (at, (act, id)) in acts.into_iter().enumerate() {
                let id = Id::from(id);
                match act {
                    0 if !map.contains_key(&id) => {
                        table.insert(id.clone(), at);
                        map.insert(id.clone(), at);
                    }
                    1 => prop_assert_eq!(table.remove(&id), map.remove(&id)),
                    _ => {}
                }
                prop_assert_eq!(table.get(&id), map.get(&id));
                prop_assert_eq!(table.len(), map.len());
            }
        }
    }
}
