//! The engine, line by line: what goes in, what comes out, and nothing else. Each test is named
//! after the scar or the rule that it proves; time is moved by hand.

mod batches;
mod calling;
mod cancelling;
mod garbage;
mod keeping;
mod limits;
mod order;
mod serving;
mod world;
