//! Where the members of an object stand, noted while it was checked.
//!
//! Knows the first few of them and whether that is all. Who checks an object passes over each of its
//! members anyway; who wants one of them need not look for it again.

use super::part::Part;

/// So many are noted: `name`, `arguments`, `_meta` and one more. Others have to be looked for.
const FEW: usize = 4;

/// Places in the text of one object; nothing is known of another.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places {
    few: [Place; FEW],
    count: usize,
    /// Whether no member is missing.
    all: bool,
}

/// Where the name of a member begins and ends, without its quotes, and its value. A message is
/// never as long as these can count.
#[derive(Clone, Copy, Debug, Default)]
struct Place([u32; 4]);

impl Places {
    /// Nothing is known.
    pub(crate) const UNKNOWN: Self = Self { few: [Place([0; 4]); FEW], count: 0, all: false };

    /// Forgets what was noted: nothing is known.
    pub(crate) fn clear(&mut self) {
        (self.count, self.all) = (0, false);
    }

    /// Notes a member whose name means what it says. `ends`: how much is left of the text at the
    /// beginning and the end of its name, and of its value.
    #[inline]
    pub(super) fn add(&mut self, text: &[u8], ends: [&[u8]; 4]) {
        if let Some(place) = self.few.get_mut(self.count) {
            *place = Place(ends.map(|rest| (text.len() - rest.len()) as u32));
        }
        self.count += 1;
    }

    /// Notes a member that has to be looked for.
    pub(super) fn pass(&mut self) {
        self.count = FEW + 1;
    }

    /// There are no more.
    pub(super) fn end(&mut self, text: &str) {
        self.all = self.count <= FEW && u32::try_from(text.len()).is_ok();
    }

    /// The last member of that name of the object that this was noted of, if there is one; nothing if
    /// it has to be looked for.
    pub(crate) fn member<'a>(&self, object: Part<'a>, wanted: &str) -> Option<Option<Part<'a>>> {
        let few = self.few.get(..self.count).filter(|_| self.all)?;
        let text = object.text();
        let is_wanted = |place: &&Place| {
            let Place([from, to, ..]) = **place;
            text.as_bytes().get(from as usize..to as usize) == Some(wanted.as_bytes())
        };
        let value = |Place([_, _, from, to]): &Place| {
            Part::sound(text.get(*from as usize..*to as usize).unwrap_or_default())
        };
        Some(few.iter().rfind(is_wanted).map(value))
    }
}
