//! taut: the Model Context Protocol over stdio.

pub mod rpc;
pub mod wire;

mod mcp;

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "tokio")]
mod driver;
#[cfg(feature = "tokio")]
mod ending;
#[cfg(feature = "tokio")]
mod error;
#[cfg(all(feature = "server", feature = "client"))]
mod memory;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "tokio")]
pub mod service;
#[cfg(feature = "tokio")]
mod stdio;
#[cfg(feature = "tokio")]
mod stream;

#[cfg(feature = "client")]
pub use client::{
    Answer, Calling, Client, ClientBuilder, ClientEvent, Closed, Command, Diagnostics, Ended,
    Grace, Junk, Pages, Request, Rung,
};
#[cfg(feature = "tokio")]
pub use ending::Ending;
#[cfg(feature = "client")]
pub use error::{ConnectError, ConnectPhase, ConnectReason, Exit, Hint, Lost, SpawnError};
#[cfg(feature = "tokio")]
pub use error::{Error, Reject, Result};
#[cfg(all(feature = "server", feature = "client"))]
pub use memory::{memory, memory_with};
#[cfg(feature = "server")]
pub use schemars::{self, JsonSchema};
#[cfg(feature = "server")]
pub use server::{
    AskError, Asked, Call, Changes, ClientInfo, Completing, IntoContents, IntoMessages, IntoReply,
    Json, Moment, NoArgs, Progress, Server, Trace,
};
#[cfg(feature = "tokio")]
pub use stdio::{ClaimError, claim_stdio};

// The vocabulary of the protocol: messages and what they are made of.
pub use mcp::{
    Annotations, At, AudioContent, BareParams, BooleanField, CacheScope, CallToolParams,
    CallToolResult, CancelledParams, Choice, ChoiceField, ClientCapabilities, CompleteParams,
    CompleteResult, Completion, CompletionArgument, CompletionContext, CompletionReference,
    Content, CreateMessageParams, CreateMessageResult, DiscoverResult, ElicitAction, ElicitForm,
    ElicitParams, ElicitResult, ElicitUrl, ElicitationCapability, ElicitationCompleteParams,
    EmbeddedResource, EmptyResult, Era, FormField, FormSchema, GetPromptParams, GetPromptResult,
    Icon, IconTheme, ImageContent, Implementation, IncludeContext, InitializeParams,
    InitializeResult, JsonObject, Level, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListRootsResult, ListToolsResult, LogParams, MAX_COMPLETIONS,
    MISSING_CLIENT_CAPABILITY, Meta, MissingCapability, ModelHint, ModelPreferences, NumberField,
    NumberKind, PageParams, ProgressParams, Prompt, PromptArgument, PromptMessage, PromptReference,
    PromptsCapability, RESOURCE_NOT_FOUND, RawJson, ReadResourceParams, ReadResourceResult,
    Resource, ResourceContents, ResourceLink, ResourceParams, ResourceReference, ResourceTemplate,
    ResourcesCapability, ResultType, Revision, Role, Root, RootsCapability, SamplingBlocks,
    SamplingCapability, SamplingContent, SamplingMessage, Schema, SerializeAt, ServerCapabilities,
    SetLevelParams, Shape, StopReason, SubscriptionFilter, SubscriptionParams, TaskSupport,
    TextContent, TextField, Tool, ToolAnnotations, ToolChoice, ToolChoiceMode, ToolExecution,
    ToolResult, ToolUse, ToolsCapability, Ttl, UNSUPPORTED_PROTOCOL_VERSION,
    URL_ELICITATION_REQUIRED, UnknownRevision, UnsupportedVersion, meta_keys, resource_not_found,
};
