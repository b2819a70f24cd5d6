//! taut
fn main() {}
