//! Finds many texts in one reading: an Aho-Corasick automaton over bytes.
//!
//! Knows bytes; must not know what the texts mean or how they are spelled. Pure. Time grows with the length
//! of what is read, not with the number of texts; memory with the bytes of the texts.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

/// One byte of a text as it is compared, and where what it was written with stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) byte: u8,
    pub(super) from: u64,
    pub(super) to: u64,
}

#[derive(Clone, Copy, Default)]
struct TrieNode {
    byte: u8,
    /// How many bytes lead here.
    depth: u32,
    child: u32,
    sibling: u32,
    /// The node of the longest end of these bytes that is a beginning, too.
    fail: u32,
    /// How long the longest text is that ends here; 0 if none does.
    hit: u32,
}

/// The texts, ready to be looked for.
pub(super) struct Automaton {
    nodes: Vec<TrieNode>,
    /// The children of the first node, by their byte.
    root: Box<[u32; 256]>,
}

/// The texts are secrets.
impl fmt::Debug for Automaton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Automaton").field("nodes", &self.nodes.len()).finish()
    }
}

impl Automaton {
    pub(super) fn new<'t>(texts: impl IntoIterator<Item = &'t [u8]>) -> Self {
        let mut this = Self { nodes: vec![TrieNode::default()], root: Box::new([0; 256]) };
        for text in texts {
            let end = text.iter().fold(0, |at, byte| this.grow(at, *byte));
            this.nodes[end as usize].hit = this.nodes[end as usize].depth;
        }
        this.link();
        this
    }

    fn grow(&mut self, at: u32, byte: u8) -> u32 {
        let known = self.child(at, byte);
        if known != 0 {
            return known;
        }
        let new = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let parent = &mut self.nodes[at as usize];
        let node = TrieNode {
            byte,
            depth: parent.depth + 1,
            sibling: parent.child,
            ..TrieNode::default()
        };
        parent.child = new;
        self.nodes.push(node);
        if at == 0 {
            self.root[usize::from(byte)] = new;
        }
        new
    }

    /// Each node's `fail`, nearest nodes first: it is nearer than the node itself.
    fn link(&mut self) {
        let mut queue = VecDeque::from([0]);
        while let Some(at) = queue.pop_front() {
            let mut child = self.nodes[at as usize].child;
            while child != 0 {
                let TrieNode { byte, sibling, .. } = self.nodes[child as usize];
                if at != 0 {
                    let fail = self.next(self.nodes[at as usize].fail, byte);
                    let hit = self.nodes[fail as usize].hit;
                    let node = &mut self.nodes[child as usize];
                    node.fail = fail;
                    node.hit = node.hit.max(hit);
                }
                queue.push_back(child);
                child = sibling;
            }
        }
    }

    fn child(&self, at: u32, byte: u8) -> u32 {
        if at == 0 {
            return self.root[usize::from(byte)];
        }
        let mut child = self.nodes[at as usize].child;
        while child != 0 && self.nodes[child as usize].byte != byte {
            child = self.nodes[child as usize].sibling;
        }
        child
    }

    fn next(&self, mut at: u32, byte: u8) -> u32 {
        loop {
            let child = self.child(at, byte);
            if child != 0 || at == 0 {
                return child;
            }
            at = self.nodes[at as usize].fail;
        }
    }

    /// Whether a text begins with this byte.
    pub(super) fn begins(&self, byte: u8) -> bool {
        self.root[usize::from(byte)] != 0
    }
}

/// A reading of one text.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    state: u32,
    /// Where each byte of the beginning that was read last stands. No longer than the longest text.
    starts: VecDeque<u64>,
}

impl Cursor {
    /// Reads one more byte; says which places one of the texts takes that ends with it.
    pub(super) fn step(&mut self, known: &Automaton, unit: Unit) -> Option<Range<u64>> {
        self.state = known.next(self.state, unit.byte);
        let TrieNode { depth, hit, .. } = known.nodes[self.state as usize];
        if depth == 0 {
            self.starts.clear();
            return None;
        }
        self.starts.push_back(unit.from);
        while self.starts.len() > depth as usize {
            self.starts.pop_front();
        }
        if hit == 0 {
            return None;
        }
        Some(self.starts[(depth - hit) as usize]..unit.to)
    }

    /// Where the beginning of a text stands that was read last.
    pub(super) fn begun(&self) -> Option<u64> {
        self.starts.front().copied()
    }

    /// How many bytes of it were read.
    pub(super) fn depth(&self) -> usize {
        self.starts.len()
    }

    /// Whether both will find the same from here on.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.state == other.state
            && self.starts.len() == other.starts.len()
            && self.starts.front() == other.starts.front()
            && self.starts.back() == other.starts.back()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[&str], text: &str) -> Vec<(u64, u64)> {
        let known = Automaton::new(texts.iter().map(|text| text.as_bytes()));
        let mut cursor = Cursor::default();
        let units = text.bytes().zip(0..).map(|(byte, from)| Unit { byte, from, to: from + 1 });
        let places = units.filter_map(|unit| cursor.step(&known, unit));
        places.map(|place| (place.start, place.end)).collect()
    }

    #[test]
    fn each_text_is_found_where_it_ends_also_inside_others() {
        assert_eq!(found(&["he", "she", "hers"], "ushers"), [(1, 4), (2, 6)]);
        assert_eq!(found(&["aab"], "aaab"), [(1, 4)]);
        assert_eq!(found(&["abc", "c"], "xcabc"), [(1, 2), (2, 5)]);
        assert_eq!(found(&["ä"], "aä"), [(1, 3)]);
        assert!(found(&[], "anything").is_empty());
    }

    /// Each byte moves forward once; what it falls back over was moved forward before.
    #[test]
    fn a_text_of_one_letter_takes_no_more_steps_than_twice_its_length() {
        let secret = "a".repeat(500) + "b";
        let text = "a".repeat(100_000) + "b";
        assert_eq!(found(&[&secret], &text), [(99_500, 100_001)]);
    }
}
