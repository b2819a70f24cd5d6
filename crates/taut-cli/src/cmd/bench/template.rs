//! What an answer looks like: the first one is read, all others are compared with it.
//!
//! Two answers of a server to the same kind of request differ in their number and in nothing else. So
//! all bytes of an answer are compared, at the speed of a comparison, and nothing is parsed.

use memchr::memmem;

use super::request::{WIDTH, digits, number};

/// A line with holes for the number.
#[derive(Debug)]
pub(super) struct Template {
    line: Vec<u8>,
    holes: Vec<usize>,
}

impl Template {
    /// Made from the answer to this request, without the end of the line.
    pub(super) fn of(line: &[u8], id: u32) -> Option<Self> {
        let holes: Vec<usize> = memmem::find_iter(line, &digits(id)).collect();
        (!holes.is_empty()).then(|| Self { line: line.to_vec(), holes })
    }

    /// The number of the request that this line answers, if each byte is as it should be.
    pub(super) fn number(&self, line: &[u8]) -> Option<u32> {
        let first = *self.holes.first()?;
        if line.len() != self.line.len() {
            return None;
        }
        let own = &line[first..first + WIDTH];
        let id = number(own)?;
        let mut from = 0;
        for hole in &self.holes {
            if line[from..*hole] != self.line[from..*hole] || line[*hole..hole + WIDTH] != *own {
                return None;
            }
            from = hole + WIDTH;
        }
        (line[from..] == self.line[from..]).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_its_templates_but_for_the_number() {
        let answer = |id: u32, text: u32, rest: &str| {
            format!(r#"{{"result":{{"text":"{text} {rest}"}},"id":{id}}}"#).into_bytes()
        };
        let template = Template::of(&answer(10_000_001, 10_000_001, "fox"), 10_000_001).unwrap();
        let table = [
            (answer(10_000_002, 10_000_002, "fox"), Some(10_000_002)),
            (answer(10_000_002, 10_000_003, "fox"), None),
            (answer(10_000_003, 10_000_002, "fox"), None),
            (answer(10_000_002, 10_000_002, "box"), None),
            (answer(10_000_002, 10_000_002, "foxes"), None),
            (answer(1, 1, "fox"), None),
            (Vec::new(), None),
        ];
        for (line, id) in table {
            assert_eq!(template.number(&line), id, "{}", String::from_utf8_lossy(&line));
        }
        assert!(Template::of(b"{}", 10_000_001).is_none());
    }
}
