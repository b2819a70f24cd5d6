//! Content blocks: what tools, prompts and resources are made of.
//!
//! Knows the kinds and what stands in for one where a revision lacks it; must not know which
//! message carries them. TOL-20, PRM-07, RES-03; matrix sections 4 and 6.

use super::macros::{wire_enum, wire_struct, wire_union};
use super::meta::Meta;
use super::revision::Revision;
use super::write::Target;

wire_enum! {
    /// Who speaks.
    pub enum Role {
        /// The person, or the program on their behalf.
        User = "user",
        /// The model.
        Assistant = "assistant",
    }
}

wire_struct! {
    /// Hints on whom a thing is for and how much it matters.
    #[derive(Default)]
    pub struct Annotations() {
        /// Who should see it.
        may audience: Vec<Role> = "audience";
        /// From 0, optional, to 1, required.
        may priority: f64 = "priority";
        /// When it last changed, as an ISO 8601 time.
        may last_modified: String = "lastModified" since V2025_06_18;
    }
}

wire_enum! {
    /// The background an icon is drawn for.
    pub enum IconTheme {
        /// A light background.
        Light = "light",
        /// A dark background.
        Dark = "dark",
    }
}

wire_struct! {
    /// A picture to show beside a name. Untrusted: fetch only `https:` and `data:` (TOL-37).
    pub struct Icon(
        /// Where the picture is, or the picture itself as a `data:` URI.
        needs src: String = "src",
    ) {
        /// Its media type.
        may mime_type: String = "mimeType";
        /// Its sizes, such as `48x48` or `any`.
        may sizes: Vec<String> = "sizes";
        /// The background it is drawn for.
        may theme: IconTheme = "theme";
    }

    /// Words.
    pub struct TextContent tagged "type" = "text" (
        /// The words.
        needs text: String = "text",
    ) {
        /// Hints for the reader.
        may annotations: Annotations = "annotations";
        /// Open metadata.
        may meta: Meta = "_meta" since V2025_06_18 when Meta::has_any;
    }

    /// A picture.
    pub struct ImageContent tagged "type" = "image" (
        /// The bytes in base64.
        needs data: String = "data",
        /// Their media type.
        needs mime_type: String = "mimeType",
    ) {
        /// Hints for the reader.
        may annotations: Annotations = "annotations";
        /// Open metadata.
        may meta: Meta = "_meta" since V2025_06_18 when Meta::has_any;
    }

    /// A sound.
    pub struct AudioContent tagged "type" = "audio" (
        /// The bytes in base64.
        needs data: String = "data",
        /// Their media type.
        needs mime_type: String = "mimeType",
    ) {
        /// Hints for the reader.
        may annotations: Annotations = "annotations";
        /// Open metadata.
        may meta: Meta = "_meta" since V2025_06_18 when Meta::has_any;
    }

    /// A resource the reader may fetch.
    pub struct ResourceLink tagged "type" = "resource_link" (
        /// Its address.
        needs uri: String = "uri",
        /// A name for programs.
        needs name: String = "name",
    ) {
        /// A name for people.
        may title: String = "title" since V2025_06_18;
        /// What it is.
        may description: String = "description";
        /// Its media type.
        may mime_type: String = "mimeType";
        /// Its size in bytes, before any encoding.
        num size: u64 = "size";
        /// Pictures to show beside it.
        may icons: Vec<Icon> = "icons" since V2025_11_25;
        /// Hints for the reader.
        may annotations: Annotations = "annotations";
        /// Open metadata.
        may meta: Meta = "_meta" since V2025_06_18 when Meta::has_any;
    }

    /// What is in a resource: either text or bytes (RES-03).
    ///
    /// ```
    /// let page = taut::types::ResourceContents::new("file:///a.md").mime_type("text/plain").text("A");
    /// assert!(page.blob.is_none());
    /// ```
    pub struct ResourceContents(
        /// Its address.
        needs uri: String = "uri",
    ) {
        /// Its media type.
        may mime_type: String = "mimeType";
        /// The text.
        may text: String = "text";
        /// The bytes in base64.
        may blob: String = "blob";
        /// Open metadata.
        may meta: Meta = "_meta" since V2025_06_18 when Meta::has_any;
    }

    /// A resource with its contents.
    pub struct EmbeddedResource tagged "type" = "resource" (
        /// The contents.
        needs resource: ResourceContents = "resource",
    ) {
        /// Hints for the reader.
        may annotations: Annotations = "annotations";
        /// Open metadata.
        may meta: Meta = "_meta" since V2025_06_18 when Meta::has_any;
    }
}

impl AudioContent {
    /// What a reader without audio is told.
    pub(super) fn stand_in(&self) -> TextContent {
        let text = format!("[{} audio left out: this protocol revision has none]", self.mime_type);
        TextContent { annotations: self.annotations.clone(), ..TextContent::new(text) }
    }
}

impl ResourceLink {
    /// The link as text, for revisions without links. The address is always in it.
    fn stand_in(&self) -> TextContent {
        let shown = self.title.as_ref().unwrap_or(&self.name);
        let mut text = format!("{shown}: {}", self.uri);
        if let Some(description) = &self.description {
            text.push('\n');
            text.push_str(description);
        }
        TextContent { annotations: self.annotations.clone(), ..TextContent::new(text) }
    }
}

wire_union! {
    /// One block of content.
    ///
    /// Written for a revision that lacks a kind, a block becomes text that says what it was.
    pub enum Content or stand_in {
        /// Words.
        Text(TextContent) = "text",
        /// A picture.
        Image(ImageContent) = "image",
        /// A sound.
        Audio(AudioContent) = "audio",
        /// A resource the reader may fetch.
        ResourceLink(Box<ResourceLink>) = "resource_link",
        /// A resource with its contents.
        Resource(Box<EmbeddedResource>) = "resource",
    }
}

impl Content {
    /// Words.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        TextContent::new(text).into()
    }

    /// A picture: base64 and its media type.
    #[must_use]
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        ImageContent::new(data, mime_type).into()
    }

    /// A sound: base64 and its media type.
    #[must_use]
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        AudioContent::new(data, mime_type).into()
    }

    /// A resource the reader may fetch.
    #[must_use]
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        ResourceLink::new(uri, name).into()
    }

    /// A resource with its contents.
    #[must_use]
    pub fn resource(contents: ResourceContents) -> Self {
        EmbeddedResource::new(contents).into()
    }

    /// The words, if this is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    fn stand_in(&self, target: Target) -> Option<TextContent> {
        match self {
            // TOL-20: audio from 2025-03-26, links from 2025-06-18.
            Self::Audio(audio) if !target.since(Revision::V2025_03_26) => Some(audio.stand_in()),
            Self::ResourceLink(link) if !target.since(Revision::V2025_06_18) => {
                Some(link.stand_in())
            }
            _ => None,
        }
    }
}

impl From<ResourceLink> for Content {
    fn from(link: ResourceLink) -> Self {
        Self::ResourceLink(Box::new(link))
    }
}

impl From<EmbeddedResource> for Content {
    fn from(resource: EmbeddedResource) -> Self {
        Self::Resource(Box::new(resource))
    }
}

impl<T: Into<String>> From<T> for Content {
    fn from(text: T) -> Self {
        Self::text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::WriteJson;
    use serde_json::{Value, json};

    fn read(value: Value) -> Result<Content, serde_json::Error> {
        serde_json::from_str(&value.to_string())
    }

    #[test]
    fn text_is_written_as_small_as_it_can_be() {
        let text = serde_json::to_string(&Content::text("a\nb").at(Revision::MODERN)).unwrap();
        assert_eq!(text, r#"{"type":"text","text":"a\nb"}"#);
    }

    #[test]
    fn a_block_is_read_wherever_its_type_stands() {
        for text in [r#"{"type":"text","text":"x","n":1}"#, r#"{"n":1,"text":"x","type":"text"}"#] {
            let Content::Text(block) = serde_json::from_str(text).unwrap() else {
                panic!("{text}")
            };
            assert_eq!(block.text, "x");
            assert_eq!(block.extra["n"], 1);
        }
    }

    #[test]
    fn a_kind_nobody_knows_is_kept_whole() {
        for text in [r#"{"type":"hologram","beams":[1,2]}"#, r#"{"beams":[1,2],"type":"hologram"}"#]
        {
            let block: Content = serde_json::from_str(text).unwrap();
            let expected = json!({ "type": "hologram", "beams": [1, 2] });
            assert_eq!(block, Content::Other(expected.clone()));
            assert_eq!(serde_json::to_value(block.at(Revision::V2024_11_05)).unwrap(), expected);
        }
    }

    #[test]
    fn what_a_block_needs_is_named_when_it_is_missing() {
        let error = |value| read(value).unwrap_err().to_string();
        assert!(error(json!({ "type": "text" })).starts_with("missing field `text`"));
        assert!(error(json!({ "text": "x" })).starts_with("missing field `type`"));
        assert!(error(json!({ "a": 1, "type": 5 })).starts_with("`type` must be a string"));
        assert!(error(json!({})).starts_with("missing field `type`"));
        assert!(error(json!(["text", "x"])).contains("expected a Content object"));
        let image: Result<ImageContent, _> =
            serde_json::from_value(json!({ "type": "text", "data": "", "mimeType": "" }));
        assert_eq!(image.unwrap_err().to_string(), "`type` is \"text\", expected \"image\"");
    }

    #[test]
    fn tol_20_older_readers_get_words_for_what_they_lack() {
        let at = |block: &Content, revision| serde_json::to_value(block.at(revision)).unwrap();
        let audio = Content::audio("AAAA", "audio/wav");
        assert_eq!(
            at(&audio, Revision::V2024_11_05),
            json!({
                "type": "text",
                "text": "[audio/wav audio left out: this protocol revision has none]",
            })
        );
        assert_eq!(at(&audio, Revision::V2025_03_26)["type"], "audio");

        let hints = Annotations::new().priority(1);
        let link = ResourceLink::new("file:///a", "a").title("A").description("first");
        let link = Content::from(link.annotations(hints));
        assert_eq!(
            at(&link, Revision::V2025_03_26),
            json!({
                "type": "text",
                "text": "A: file:///a\nfirst",
                "annotations": { "priority": 1 },
            })
        );
        assert_eq!(at(&link, Revision::V2025_06_18)["type"], "resource_link");
    }

    #[test]
    fn a_block_is_small_enough_to_be_moved_about() {
        // The bound is what a text block needs; larger kinds are boxed to stay under it.
        assert!(size_of::<Content>() <= size_of::<TextContent>() + 32);
    }
}
