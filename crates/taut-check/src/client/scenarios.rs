//! What the played server can be. Judges nothing.

/// The scenarios, each with what it is for.
pub(crate) const SCENARIOS: [(&str, &str); 42] = [
    // The long ones first.
    ("mute", "an older server that leaves initialize unanswered"),
    ("stuck", "a server of both eras that leaves the first call unanswered"),
    ("legacy-stuck", "a server of the older revisions that leaves the first call unanswered"),
    ("late", "a server of both eras that answers the first call when it is cancelled"),
    (
        "stuck-list",
        "a server of both eras with prompts and resources that leaves the first list of those unanswered",
    ),
    ("dual", "a good server of both eras"),
    ("chatty", "a good server of both eras that writes lines to stderr, as many do"),
    ("legacy", "a good server of the older revisions, which refuses server/discover with -32601"),
    ("legacy-2024", "a server that knows 2024-11-05 only, and is as rude as `rude`"),
    ("legacy-0326", "a server that knows 2025-03-26 only, is as rude as `rude`, and sends a batch"),
    ("legacy-0618", "a server that knows 2025-06-18 only, offers more than tools, and in pages"),
    ("legacy-invalid", "an older server that refuses server/discover with -32600"),
    ("legacy-custom", "an older server that refuses server/discover with -32000"),
    ("legacy-internal", "an older server that refuses server/discover with -32603"),
    ("legacy-zero", "an older server that refuses server/discover with 0"),
    ("legacy-exits", "an older server that ends at server/discover"),
    ("legacy-odd", "an older server that refuses server/discover with -32602"),
    ("legacy-silent", "an older server that leaves server/discover unanswered"),
    ("modern", "a good server of 2026-07-28 only"),
    ("modern-version", "a server that refuses every version with -32022 but one of the future"),
    (
        "modern-versions",
        "a server of 2026-07-28 that also names versions of the future and of the past",
    ),
    (
        "modern-ask",
        "a server of 2026-07-28 that asks as older ones do, and for what is not declared; it must not",
    ),
    (
        "modern-ask-page",
        "a server of 2026-07-28 that asks for a page to be opened, which is not declared",
    ),
    ("modern-state", "a server of 2026-07-28 that wants a call once more, with a state, and again"),
    (
        "modern-input",
        "a server of 2026-07-28 that asks for what the client declares before it answers",
    ),
    ("modern-full", "a server of 2026-07-28 with tools, prompts, resources and completions"),
    ("modern-plain", "a server of 2026-07-28 that leaves out `resultType`"),
    (
        "modern-type",
        "a server of 2026-07-28 whose list of tools has a `resultType` that nobody knows",
    ),
    (
        "modern-type-call",
        "a server of 2026-07-28 whose calls have a `resultType` that nobody knows, with a state",
    ),
    ("legacy-full", "an older server with tools, prompts, resources, completions and logging"),
    (
        "odd",
        "a good server of the older revisions, with odd characters in its tools, odd ids and odd cancellations",
    ),
    ("offer", "a server that agrees on 1999-01-01, and does not end when its stdin ends"),
    ("offer-later", "a server that agrees on a version of the future"),
    ("rude", "a server that writes noise, asks the client things and answers what was not asked"),
    ("rude-0618", "a server that knows 2025-06-18 only, and is as rude as `rude`"),
    ("array", "a server of the older revisions that sends an array"),
    ("array-0618", "a server that knows 2025-06-18 only, and sends an array"),
    ("slow", "a server of the older revisions that takes a second for each answer"),
    ("modern-slow", "a server of 2026-07-28 only that takes a second for each answer"),
    (
        "pages",
        "a server whose lists come in pages, one with an empty cursor, and whose answers come out of order",
    ),
    ("stubborn", "a server that does not end when its stdin ends"),
    ("deaf", "a server that does not end when its stdin ends, nor at SIGTERM"),
];
