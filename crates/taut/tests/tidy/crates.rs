//! Other people's crates: how many, and under which licences.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::Problem;

/// Crates that a server and a client need beside taut itself. 36 were measured when the list of
/// dependencies was drawn up; two more is room for an update that splits one, not for a new one.
pub(crate) const LIMIT: usize = 38;

/// A crate in the tree, with the licence it states.
pub(crate) struct Package {
    name: String,
    licence: Option<String>,
}

fn cargo(root: &Path, args: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO")).args(args).current_dir(root).output();
    let output = output.map_err(|error| format!("cargo {}: {error}", args.join(" ")))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo {}: {stderr}", args.join(" ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Every crate that the workspace can pull in, and the command that told.
///
/// All platforms if their crates are here or can be fetched; without a network, this platform's.
pub(crate) fn packages(root: &Path) -> (Vec<Package>, String) {
    let version = cargo(root, &["-vV"]).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().trim();
    let base = ["metadata", "--format-version", "1"];
    let ways: [&[&str]; 3] =
        [&["--offline"], &["--config", "net.retry=0"], &["--offline", "--filter-platform", host]];
    let mut errors = Vec::new();
    for way in ways {
        let args = [&base, way].concat();
        match cargo(root, &args) {
            Ok(json) => return (read_packages(&json), format!("cargo {}", args.join(" "))),
            Err(error) => errors.push(error),
        }
    }
    panic!("cargo metadata did not answer:\n{}", errors.join("\n"));
}

fn read_packages(json: &str) -> Vec<Package> {
    let metadata: Value = serde_json::from_str(json).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    packages
        .map(|p| Package {
            name: text(&p["name"]).unwrap_or_default(),
            licence: text(&p["license"]),
        })
        .collect()
}

/// The names in deny.toml's `allow` list under `[licenses]`: the one place that says them.
pub(crate) fn allowed_licences(deny: &str) -> BTreeSet<String> {
    let uncommented: String =
        deny.lines().map(|line| line.split('#').next().unwrap_or("").to_owned() + "\n").collect();
    let section = uncommented.split("\n[").find(|part| part.starts_with("licenses]"));
    let list = section.and_then(|part| part.split_once("allow = [")?.1.split_once(']'));
    let quoted = list.map_or("", |(list, _)| list).split('"').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

pub(crate) fn unlicensed(packages: &[Package], allowed: &BTreeSet<String>) -> Vec<Problem> {
    let bad = packages.iter().filter_map(|package| {
        let what = match &package.licence {
            None => "states no licence".to_owned(),
            Some(licence) if permits(licence, allowed) == Ok(true) => return None,
            Some(licence) => format!("is under `{licence}`"),
        };
        Some(format!(
            "crate {} {what}, which deny.toml does not allow: take another crate, or add the \
             licence there and say why in docs/decisions/0002-dependencies.md",
            package.name
        ))
    });
    bad.map(|what| Problem::new("deny.toml", 1, what)).collect()
}

/// Whether an SPDX expression leaves a way to use the crate under allowed licences only.
fn permits(expression: &str, allowed: &BTreeSet<String>) -> Result<bool, String> {
    // `MIT/Apache-2.0` is how `OR` was written before SPDX expressions.
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let verdict = any(&mut rest, allowed)?;
    if rest.is_empty() { Ok(verdict) } else { Err(format!("left over: {}", rest.join(" "))) }
}

fn any(rest: &mut &[&str], allowed: &BTreeSet<String>) -> Result<bool, String> {
    let mut verdict = all(rest, allowed)?;
    while take(rest, "OR") {
        verdict |= all(rest, allowed)?;
    }
    Ok(verdict)
}

fn all(rest: &mut &[&str], allowed: &BTreeSet<String>) -> Result<bool, String> {
    let mut verdict = one(rest, allowed)?;
    while take(rest, "AND") {
        verdict &= one(rest, allowed)?;
    }
    Ok(verdict)
}

fn one(rest: &mut &[&str], allowed: &BTreeSet<String>) -> Result<bool, String> {
    if take(rest, "(") {
        let verdict = any(rest, allowed)?;
        return if take(rest, ")") { Ok(verdict) } else { Err("`)` is missing".to_owned()) };
    }
    let mut name = next(rest)?.to_owned();
    if take(rest, "WITH") {
        name = format!("{name} WITH {}", next(rest)?);
    }
    Ok(allowed.contains(&name))
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    let found = rest.first() == Some(&word);
    if found {
        *rest = &rest[1..];
    }
    found
}

fn next<'a>(rest: &mut &[&'a str]) -> Result<&'a str, String> {
    let (first, others) = rest.split_first().ok_or("a licence is missing")?;
    *rest = others;
    Ok(first)
}

/// The crates that taut links on this platform, itself left out.
pub(crate) fn normal_dependencies(root: &Path, features: &[&str]) -> BTreeSet<String> {
    let base = ["tree", "-p", "taut", "-e", "normal", "--prefix", "none"];
    let args = [&base, features].concat();
    let offline = cargo(root, &[args.as_slice(), &["--offline"]].concat());
    let listing = offline.or_else(|_| cargo(root, &args)).unwrap_or_else(|error| panic!("{error}"));
    read_tree(&listing)
}

/// `name v1.2.3 (…)` per line; a crate in two versions counts twice.
fn read_tree(listing: &str) -> BTreeSet<String> {
    let crates = listing.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?))
    });
    crates.filter(|name| !name.starts_with("taut ")).collect()
}

pub(crate) fn too_many(crates: &BTreeSet<String>, limit: usize) -> Vec<Problem> {
    if crates.len() <= limit {
        return Vec::new();
    }
    let list: Vec<&str> = crates.iter().map(String::as_str).collect();
    let what = format!(
        "{} crates, {limit} at most: drop one, or make it an optional feature. Now: {}",
        list.len(),
        list.join(", ")
    );
    vec![Problem::new("crates/taut/Cargo.toml", 1, what)]
}

pub(crate) fn unwanted(crates: &BTreeSet<String>, names: &[&str], advice: &str) -> Vec<Problem> {
    let named = |name: &&str| crates.iter().any(|c| c.split(' ').next() == Some(*name));
    let found = names.iter().filter(|name| named(name)).map(|name| {
        let what = format!("the library pulls in {name}: {advice}");
        Problem::new("crates/taut/Cargo.toml", 1, what)
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn licence_expressions_are_read_as_they_are_meant() {
        let allowed = set(&["MIT", "Unicode-3.0"]);
        let table = [
            ("MIT", Ok(true)),
            ("GPL-3.0", Ok(false)),
            ("GPL-3.0 OR MIT", Ok(true)),
            ("MIT/GPL-3.0", Ok(true)),
            ("MIT AND GPL-3.0", Ok(false)),
            ("(MIT OR GPL-3.0) AND Unicode-3.0", Ok(true)),
            ("MIT OR GPL-3.0 AND Unicode-3.0", Ok(true)),
            ("(MIT OR Unicode-3.0) AND GPL-3.0", Ok(false)),
            ("MIT WITH odd-exception", Ok(false)),
            ("(MIT", Err(())),
            ("MIT MIT", Err(())),
            ("", Err(())),
        ];
        for (expression, want) in table {
            assert_eq!(permits(expression, &allowed).map_err(|_| ()), want, "{expression}");
        }
    }

    #[test]
    fn a_crate_without_a_good_licence_is_named() {
        let json = r#"{"packages":[{"name":"good","license":"MIT"},{"name":"bad","license":"GPL-3.0"},
                       {"name":"none","license":null}]}"#;
        let problems = unlicensed(&read_packages(json), &set(&["MIT"]));
        assert_eq!(problems.len(), 2);
        assert!(problems[0].what.contains("crate bad is under `GPL-3.0`"));
        assert!(problems[1].what.contains("crate none states no licence"));
    }

    #[test]
    fn the_allow_list_is_read_from_its_section_without_comments() {
        let deny = "[bans]\nallow = [\"x\"]\n[licenses]\nallow = [\n  \"MIT\", # \"GPL-3.0\"\n  \"ISC\",\n]\n";
        assert_eq!(allowed_licences(deny), set(&["MIT", "ISC"]));
        assert!(allowed_licences("[licenses]\n").is_empty());
    }

    #[test]
    fn one_crate_too_many_is_named() {
        let crates = read_tree("taut v0.1.0 (here)\na v1.0.0\nb v1.0.0\nb v2.0.0\na v1.0.0 (*)\n");
        assert_eq!(crates, set(&["a v1.0.0", "b v1.0.0", "b v2.0.0"]));
        assert!(too_many(&crates, 3).is_empty());
        assert!(too_many(&crates, 2)[0].what.contains("b v2.0.0"));
    }

    #[test]
    fn a_runtime_in_the_pure_core_is_named() {
        let crates = read_tree("tokio v1.0.0\ntokio-util v0.1.0\n");
        assert_eq!(unwanted(&crates, &["tokio", "mio"], "why").len(), 1);
        assert!(unwanted(&read_tree("tokio-util v0.1.0"), &["tokio"], "why").is_empty());
    }
}
