//! An answer that does not pass the check against the schema of its tool.

use std::fmt;

use crate::mcp::CallToolResult;
use crate::schema::{Misfit, SchemaFault};

/// What a tool answered is not what its `outputSchema` promises, or cannot be checked against it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BadOutput {
    /// The tool.
    pub tool: String,
    /// What is wrong.
    pub fault: OutputFault,
    /// What it answered, whole.
    pub result: CallToolResult,
}

/// What is wrong with an answer, or with the schema that it should be checked against.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OutputFault {
    /// There is no `structuredContent`, though there is a schema for it.
    Missing,
    /// It does not fit.
    Misfit(Misfit),
    /// The schema cannot be used.
    Schema(SchemaFault),
    /// It is too long to be checked.
    TooLong {
        /// How long it is, in bytes.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// The schema asks for more steps, or deeper ones, than a check may take.
    TooMuch,
}

impl fmt::Display for BadOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = &self.tool;
        match &self.fault {
            OutputFault::Missing => write!(
                f,
                "the tool {tool} has a schema for its answers, and answered without structuredContent"
            ),
            OutputFault::Misfit(misfit) => {
                write!(f, "the answer of {tool} does not fit the tool's own schema: {misfit}")
            }
            OutputFault::Schema(fault) => {
                write!(f, "the answer of {tool} cannot be checked, because of its schema: {fault}")
            }
            OutputFault::TooLong { bytes, limit } => {
                write!(
                    f,
                    "the answer of {tool} is too long to be checked: {bytes} bytes, not {limit}"
                )
            }
            OutputFault::TooMuch => {
                write!(
                    f,
                    "the answer of {tool} cannot be checked: its schema asks for too many steps"
                )
            }
        }
    }
}
