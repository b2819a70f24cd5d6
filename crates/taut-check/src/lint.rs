//! A lint for the schemas of tools: what keeps the specification, and some hosts still cannot use.
//!
//! `taut doctor` tells all of it, [`Check`](crate::Check) `tools-hosts` gives what is serious as advice. Pure, and
//! depends on `serde_json` only. Takes the tools of a list as JSON values. Visits every part of a
//! schema once and follows no reference, so the time is in proportion to the list. The statements about
//! hosts come from tests with about thirty of them in November 2026.

use std::fmt;

use serde_json::Value;

/// What a schema breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A `format` that a host does not know, such as Rust's `uint64`.
    Format,
    /// `"type"` is a list.
    TypeList,
    /// `anyOf`, `oneOf` or `allOf` at the root of the arguments.
    Alternatives,
    /// An array that does not say what it holds.
    Items,
    /// The name of a property that interfaces of models refuse.
    PropertyName,
    /// `true` or `{}` where a schema should say what is wanted.
    Anything,
    /// A `$ref` that leads out of the schema, or nowhere.
    Reference,
    /// `required` names a property that there is not.
    Required,
    /// A `$ref` at the root of the arguments.
    RootReference,
    /// The name of a tool that is too long for interfaces of models.
    ToolName,
    /// The list of tools comes in several pages.
    Pages,
    /// Arguments that may be anything beside those that are named.
    OpenObject,
    /// A tool that does not say whether it changes anything.
    Annotations,
    /// A tool without a description.
    Description,
}

impl Rule {
    /// Its name, for programs and for people who look it up.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Format => "unknown-format",
            Self::TypeList => "type-list",
            Self::Alternatives => "alternatives-at-root",
            Self::Items => "array-without-items",
            Self::PropertyName => "property-name",
            Self::Anything => "untyped-property",
            Self::Reference => "bad-reference",
            Self::Required => "required-unknown",
            Self::RootReference => "reference-at-root",
            Self::ToolName => "long-name",
            Self::Pages => "list-in-pages",
            Self::OpenObject => "open-arguments",
            Self::Annotations => "no-annotations",
            Self::Description => "no-description",
        }
    }

    /// Whether some host cannot use the tool, or the list, because of it.
    #[must_use]
    pub const fn is_serious(self) -> bool {
        !matches!(self, Self::Anything | Self::Description | Self::OpenObject | Self::Annotations)
    }

    /// Which hosts that is.
    #[must_use]
    pub const fn hurts(self) -> &'static str {
        match self {
            Self::Format => {
                "AutoGen, which then loads no tool of the server at all; gemini and hosts that use Ajv may print a \
                 warning for each"
            }
            Self::TypeList => {
                "AutoGen, which then loads no tool of the server at all; gemini and the inspector warn"
            }
            Self::Alternatives => {
                "hosts with models of Anthropic or OpenAI: their interfaces refuse the request with all \
                 tools in it"
            }
            Self::Items => {
                "hosts with models of OpenAI or Google: their interfaces refuse the request with all tools \
                 in it"
            }
            Self::PropertyName => {
                "hosts with models of Anthropic: the interface refuses the request with all tools in it"
            }
            Self::Anything => {
                "hosts with models of Google, and models, which have to guess what to send"
            }
            Self::Reference => "hosts that resolve references: they leave the tool out, or fail",
            Self::Required => "strict hosts and models: no call can be right",
            Self::RootReference => {
                "hosts that look for properties at the root: they show the model a tool without arguments"
            }
            Self::ToolName => {
                "hosts with models of Anthropic or OpenAI, whose interfaces take 64 characters; most hosts also \
                 put the server's name before it"
            }
            Self::Pages => {
                "hosts that ask for the first page only: they do not see the other tools"
            }
            Self::OpenObject => {
                "hosts that use the strict mode of OpenAI's interfaces, which refuses such a tool; and models, which \
                 may send arguments that nobody reads"
            }
            Self::Annotations => {
                "hosts that ask a person before each call unless the tool says that it only reads, such as VS Code \
                 and Codex"
            }
            Self::Description => "models, which have only the name to go by",
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn change(self) -> &'static str {
        match self {
            Self::Format => "leave the format out, and say a range with minimum and maximum",
            Self::TypeList => {
                "give the field one type, and leave it out of required if it may be absent"
            }
            Self::Alternatives => "put the alternatives into a property",
            Self::Items => "add items, such as {\"type\":\"string\"}",
            Self::PropertyName => {
                "use letters, digits, dots, dashes and underscores, 64 of them at most"
            }
            Self::Anything => "give it a type",
            Self::Reference => "refer to something in the same schema, under $defs",
            Self::Required => "add the property, or take its name out of required",
            Self::RootReference => "put the object itself at the root, and references below it",
            Self::ToolName => "use a shorter name",
            Self::Pages => "send all tools on one page; some hundreds are no problem",
            Self::OpenObject => {
                "add \"additionalProperties\": false to the schema of the arguments"
            }
            Self::Annotations => {
                "add annotations: readOnlyHint if it changes nothing, destructiveHint: false if it only adds"
            }
            Self::Description => "say in one sentence what the tool does",
        }
    }
}

/// One place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lint {
    /// What is broken.
    pub rule: Rule,
    /// The tool's name, or its number in the list.
    pub tool: String,
    /// Where in its schema: a JSON pointer, empty for the root.
    pub at: String,
    /// What stands there, in a few words.
    pub what: String,
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}: {}", self.tool, self.at, self.what)
    }
}

/// Formats that AutoGen knows; it loads no tool of a server that has another one anywhere in its arguments.
const FORMATS: [&str; 27] = [
    "binary",
    "byte",
    "date",
    "date-time",
    "decimal",
    "double",
    "duration",
    "email",
    "float",
    "hostname",
    "int32",
    "int64",
    "ipv4",
    "ipv4-network",
    "ipv6",
    "ipv6-network",
    "json",
    "password",
    "path",
    "time",
    "uri",
    "uuid",
    "uuid1",
    "uuid2",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Places that are reported at most: a list that breaks a rule everywhere breaks it as a whole.
const MOST: usize = 1_000;

/// The longest name of a tool that the interfaces of models take.
const LONGEST_NAME: usize = 64;

/// All that is wrong with these tools, in the order of the list. `first_page` is how many of them were on the
/// first page, if there were more pages.
#[must_use]
pub fn lint(tools: &[Value], first_page: Option<usize>) -> Vec<Lint> {
    let mut found = Vec::new();
    if let Some(first) = first_page {
        let what = format!("{first} of {} tools are on the first page", tools.len());
        let (rule, tool, at) = (Rule::Pages, "tools/list".to_owned(), String::new());
        found.push(Lint { rule, tool, at, what });
    }
    for (number, tool) in tools.iter().enumerate() {
        let name = tool.get("name").and_then(Value::as_str);
        let name = name.map_or_else(|| format!("tool {}", number + 1), str::to_owned);
        let mut visit = Visit { tool: &name, found: &mut found, root: &Value::Null, sent: true };
        let described = |member| tool.get(member).and_then(Value::as_str).unwrap_or_default();
        if described("description").trim().is_empty() {
            visit.add(Rule::Description, "", "it has no description".to_owned());
        }
        if name.chars().count() > LONGEST_NAME {
            visit.add(
                Rule::ToolName,
                "",
                format!("its name has {} characters", name.chars().count()),
            );
        }
        if !tool.get("annotations").is_some_and(Value::is_object) {
            visit.add(Rule::Annotations, "", "it has no annotations".to_owned());
        }
        let input = tool.get("inputSchema").unwrap_or(&Value::Null);
        if input.is_object() && input.get("additionalProperties").is_none() {
            visit.add(Rule::OpenObject, "", "it has no additionalProperties".to_owned());
        }
        for member in ["inputSchema", "outputSchema"] {
            let Some(schema) = tool.get(member).filter(|schema| schema.is_object()) else {
                continue;
            };
            visit.root = schema;
            visit.sent = member == "inputSchema";
            let place = if member == "inputSchema" { "" } else { "#output" };
            if member == "inputSchema"
                && let Some(word) =
                    ["anyOf", "oneOf", "allOf"].iter().find(|w| schema.get(w).is_some())
            {
                visit.add(Rule::Alternatives, "", format!("it has {word} at the root"));
            }
            if member == "inputSchema" && schema.get("$ref").is_some() {
                visit.add(Rule::RootReference, "", "it has $ref at the root".to_owned());
            }
            visit.schema(schema, &mut place.to_owned());
        }
    }
    found
}

struct Visit<'a> {
    tool: &'a str,
    found: &'a mut Vec<Lint>,
    root: &'a Value,
    /// Whether it is about arguments: the hosts that stumble over formats and types do not read the schemas of results.
    sent: bool,
}

impl Visit<'_> {
    fn add(&mut self, rule: Rule, at: &str, what: String) {
        if self.found.len() < MOST {
            let (tool, at) = (self.tool.to_owned(), at.to_owned());
            self.found.push(Lint { rule, tool, at, what });
        }
    }

    fn schema(&mut self, schema: &Value, at: &mut String) {
        if let Some(format) = schema.get("format").and_then(Value::as_str)
            && self.sent
            && !FORMATS.contains(&format)
        {
            self.add(Rule::Format, at, format!("its format is {format:?}"));
        }
        if let Some(Value::Array(types)) = schema.get("type").filter(|_| self.sent) {
            let types: Vec<&str> = types.iter().filter_map(Value::as_str).collect();
            self.add(Rule::TypeList, at, format!("its type is a list: {}", types.join(", ")));
        }
        let is_array = schema.get("type").and_then(Value::as_str) == Some("array");
        if is_array && schema.get("items").is_none() && schema.get("prefixItems").is_none() {
            self.add(Rule::Items, at, "it is an array without items".to_owned());
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let inside = reference.strip_prefix('#').and_then(|path| self.root.pointer(path));
            if inside.is_none() {
                self.add(Rule::Reference, at, format!("it refers to {reference:?}"));
            }
        }
        self.required(schema, at);
        for member in ["properties", "$defs", "definitions", "patternProperties"] {
            let Some(all) = schema.get(member).and_then(Value::as_object) else { continue };
            for (name, inner) in all {
                if member == "properties" {
                    self.property(name, inner, at);
                }
                self.deeper(at, &[member, name], inner);
            }
        }
        for member in ["items", "additionalProperties", "not", "if", "then", "else", "contains"] {
            if let Some(inner) = schema.get(member).filter(|inner| inner.is_object()) {
                self.deeper(at, &[member], inner);
            }
        }
        for member in ["anyOf", "oneOf", "allOf", "prefixItems"] {
            let ways = schema.get(member).and_then(Value::as_array);
            for (number, inner) in ways.into_iter().flatten().enumerate() {
                self.deeper(at, &[member, &number.to_string()], inner);
            }
        }
    }

    fn property(&mut self, name: &str, schema: &Value, at: &str) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            self.add(Rule::PropertyName, at, format!("a property is called {name:?}"));
        }
        let says = ["type", "$ref", "enum", "const", "anyOf", "oneOf", "allOf", "properties"];
        if !says.iter().any(|word| schema.get(word).is_some()) {
            self.add(Rule::Anything, at, format!("the property {name:?} has no type"));
        }
    }

    fn required(&mut self, schema: &Value, at: &str) {
        let Some(required) = schema.get("required").and_then(Value::as_array) else { return };
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        let missing = required.iter().filter_map(Value::as_str);
        for name in missing.filter(|name| !properties.contains_key(*name)) {
            self.add(Rule::Required, at, format!("it requires {name:?}, which is no property"));
        }
    }

    fn deeper(&mut self, at: &mut String, steps: &[&str], schema: &Value) {
        let before = at.len();
        for step in steps {
            at.push('/');
            at.push_str(&step.replace('~', "~0").replace('/', "~1"));
        }
        self.schema(schema, at);
        at.truncate(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rules(schema: Value) -> Vec<(Rule, String)> {
        let tool = json!({ "name": "t", "description": "d", "inputSchema": schema });
        let found = lint(&[tool], None)
            .into_iter()
            .filter(|found| found.rule.is_serious() || found.rule == Rule::Anything);
        found.map(|found| (found.rule, found.at)).collect()
    }

    fn told(tools: &[Value], first_page: Option<usize>) -> Vec<String> {
        lint(tools, first_page)
            .iter()
            .map(|found| format!("{} {found}", found.rule.name()))
            .collect()
    }

    #[test]
    fn arguments_that_are_open_and_tools_that_do_not_say_what_they_do_are_told() {
        let tool = |schema: Value, annotations: Value| json!({ "name": "t", "description": "d", "inputSchema": schema, "annotations": annotations });
        let closed = json!({ "type": "object", "additionalProperties": false });
        let (hints, none) = (json!({ "readOnlyHint": true }), Value::Null);
        assert_eq!(told(&[tool(closed.clone(), hints.clone())], None), [""; 0]);
        let open = told(&[tool(json!({ "type": "object" }), hints)], None);
        assert_eq!(open, ["open-arguments t: it has no additionalProperties"]);
        assert_eq!(told(&[tool(closed, none)], None), ["no-annotations t: it has no annotations"]);
        assert!(!Rule::OpenObject.is_serious() && !Rule::Annotations.is_serious());
    }

    #[test]
    fn a_list_in_pages_is_told_once() {
        let closed = json!({ "type": "object", "additionalProperties": false });
        let tool =
            json!({ "name": "t", "description": "d", "inputSchema": closed, "annotations": {} });
        let all = told(&vec![tool; 7], Some(5));
        assert_eq!(all, ["list-in-pages tools/list: 5 of 7 tools are on the first page"]);
        assert!(Rule::Pages.is_serious());
    }

    fn one(property: Value) -> Vec<(Rule, String)> {
        rules(json!({ "type": "object", "properties": { "p": property } }))
    }

    #[test]
    fn tol_03_each_rule_finds_its_place() {
        let at = |rule, at: &str| vec![(rule, at.to_owned())];
        let p = "/properties/p";
        let integer = |format: &str| json!({ "type": "integer", "format": format });
        assert_eq!(one(integer("uint64")), at(Rule::Format, p));
        assert_eq!(one(integer("uint8")), at(Rule::Format, p));
        assert_eq!(one(integer("int64")), []);
        assert_eq!(one(json!({ "type": ["string", "null"] })), at(Rule::TypeList, p));
        assert_eq!(one(json!({ "type": "array" })), at(Rule::Items, p));
        assert_eq!(one(json!({ "type": "array", "items": { "type": "string" } })), []);
        assert_eq!(
            one(json!({ "type": "array", "items": integer("uint") })),
            at(Rule::Format, "/properties/p/items")
        );
        assert_eq!(one(json!(true)), at(Rule::Anything, ""));
        assert_eq!(one(json!({ "$ref": "https://example.org/x" })), at(Rule::Reference, p));
        assert_eq!(one(json!({ "$ref": "#/$defs/no" })), at(Rule::Reference, p));
        assert_eq!(one(json!({ "$ref": "#/properties/p" })), []);
        assert_eq!(
            rules(json!({ "type": "object", "properties": { "a b": { "type": "string" } } })),
            at(Rule::PropertyName, "")
        );
        assert_eq!(rules(json!({ "type": "object", "anyOf": [] })), at(Rule::Alternatives, ""));
        let defined = json!({ "type": "object", "$ref": "#/$defs/a", "$defs": { "a": { "type": "object" } } });
        assert_eq!(rules(defined), at(Rule::RootReference, ""));
        assert_eq!(
            rules(json!({ "type": "object", "properties": {}, "required": ["x"] })),
            at(Rule::Required, "")
        );
        let nested = json!({ "type": "object", "properties": { "q/r": { "type": ["null"] } } });
        assert_eq!(
            one(json!({ "anyOf": [nested] })),
            [
                (Rule::PropertyName, "/properties/p/anyOf/0".to_owned()),
                (Rule::TypeList, "/properties/p/anyOf/0/properties/q~1r".to_owned()),
            ]
        );
    }

    #[test]
    fn a_tool_without_a_description_or_a_name_is_told() {
        let mut told = told(&[json!({ "inputSchema": { "type": "object" } }), json!(3)], None);
        told.retain(|told| told.starts_with("no-description"));
        let words = |number| format!("no-description tool {number}: it has no description");
        assert_eq!(told, [words(1), words(2)]);
    }

    #[test]
    fn a_name_over_64_characters_is_told() {
        let named = |length: usize| {
            let schema = json!({ "type": "object" });
            let tool =
                json!({ "name": "n".repeat(length), "description": "d", "inputSchema": schema });
            let found = lint(&[tool], None).into_iter().map(|found| found.rule);
            found.filter(|rule| rule.is_serious()).collect::<Vec<_>>()
        };
        assert_eq!((named(64), named(65)), (vec![], vec![Rule::ToolName]));
    }

    #[test]
    fn a_list_that_is_wrong_everywhere_ends() {
        let tool = json!({ "name": "t", "inputSchema": { "type": "array" } });
        assert_eq!(lint(&vec![tool; 5_000], None).len(), MOST);
    }
}
