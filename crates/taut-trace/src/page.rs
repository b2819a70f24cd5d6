//! The page: one document with everything in it, for a live session or with a capture inside.
//!
//! Knows only how its parts are put together; the parts are in `page/`. What servers said goes in as
//! data, never as markup. Pure: whoever serves it brings the nonce.

const DOCUMENT: &str = include_str!("../page/index.html");
const STYLE: &str = include_str!("../page/style.css");
const SCRIPTS: [&str; 3] = [
    include_str!("../page/model.js"),
    include_str!("../page/tree.js"),
    include_str!("../page/app.js"),
];

/// What the page may do: run its own script, and talk to where it came from. Nothing else is loaded.
#[must_use]
pub fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'"
    )
}

/// The document. With the lines of a capture it shows that; without, it asks its server for lines.
/// The nonce is a word that nobody can guess, of letters and digits.
#[must_use]
pub fn document(nonce: &str, capture: Option<&str>) -> String {
    let meta =
        format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">", policy(nonce));
    let data = capture.map(|lines| {
        // In JSON this sign stands in texts only, where it can be written so; no text can end the script.
        let lines = lines.replace('<', "\\u003c");
        format!("<script type=\"application/json\" id=\"capture\">\n{lines}</script>")
    });
    let script = SCRIPTS.join("\n").replace("'use strict';\n", "");
    let parts = [
        ("<!--policy-->", meta.as_str()),
        ("<!--style-->", STYLE),
        ("<!--nonce-->", nonce),
        ("<!--script-->", &format!("'use strict';\n{script}")),
        ("<!--data-->", data.as_deref().unwrap_or_default()),
    ];
    let mut page = String::new();
    let mut rest = DOCUMENT;
    // From front to back, so that nothing in a part is taken for a place.
    while let Some(start) = rest.find("<!--") {
        let (before, from) = rest.split_at(start);
        page.push_str(before);
        let part = parts.iter().find(|(place, _)| from.starts_with(place));
        let (place, text) = part.copied().unwrap_or(("<!--", "<!--"));
        page.push_str(text);
        rest = &from[place.len()..];
    }
    page.push_str(rest);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_in_the_document_and_nothing_is_fetched() {
        let page = document("abc", None);
        for sign in ["<!--", "src=", "@import", "url(", "<link"] {
            assert!(!page.contains(sign), "{sign}");
        }
        assert!(page.contains("<script nonce=\"abc\">") && page.contains("class Model"));
        for script in SCRIPTS {
            assert!(!script.contains("</script") && !script.contains("innerHTML"));
        }
    }

    #[test]
    fn a_capture_cannot_become_markup() {
        let line = "{\"text\":\"</script><script>alert(1)</script><!--script-->\"}\n";
        let page = document("abc", Some(line));
        assert_eq!(page.matches("<script").count(), 2);
        assert!(page.contains("\\u003c/script>\\u003cscript>alert(1)"));
    }
}
